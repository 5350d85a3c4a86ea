#!/bin/sh
# Looks for Python 3.11+ and Java 17+ before anything is downloaded, and prints the path of the Python to use.
# What is missing or too old is one line on standard error with the command that fixes it, and exit status 2.
# Plain POSIX sh: it has to run where nothing of this project does.
set -u

have() { command -v "$1" >/dev/null 2>&1; }

# The newest package of a family that this apt offers: $1 with its %s replaced by each of the other arguments in turn.
apt_offers() {
    family=$1
    shift
    for version in "$@"; do
        # shellcheck disable=SC2059
        package=$(printf "$family" "$version")
        if have apt-cache && apt-cache show "$package" >/dev/null 2>&1; then
            echo "$package"
            return 0
        fi
    done
    return 1
}

mend_python() {
    if have brew; then
        echo "brew install python@3.11"
    elif have apt-get; then
        package=$(apt_offers 'python%s' 3.11 3.13 3.12) || package=python3
        echo "sudo apt-get install $package $package-venv"
    elif have dnf; then
        echo "sudo dnf install python3.11"
    else
        echo "install Python 3.11 or newer, or set PYTHON=/path/to/python3.11"
    fi
}

mend_java() {
    if have brew; then
        echo 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"'
    elif have apt-get; then
        package=$(apt_offers 'openjdk-%s-jre-headless' 17 21 25) || package=default-jre-headless
        echo "sudo apt-get install $package"
    elif have dnf; then
        echo "sudo dnf install java-17-openjdk-headless"
    else
        echo "install Java 17 or newer, or set JAVA_HOME"
    fi
}

refuse() {
    echo "wait-registry: $1. Fix: $2" >&2
    exit 2
}

# Prints major.minor; nothing when the command is no Python that runs (a shim without a version behind it, a stub).
python_version() { "$1" -c 'import sys; sys.stdout.write("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

is_new_enough() {
    case $1 in
    3.[0-9] | 3.10 | [0-2].* | '') return 1 ;;
    *) return 0 ;;
    esac
}

find_python() {
    oldest=
    # 3.11 first: it is the version that the tests run on.
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3 python}; do
        seen=$(python_version "$candidate") || continue
        if is_new_enough "$seen"; then
            python=$(command -v "$candidate")
            return 0
        fi
        oldest="$candidate is $seen"
    done
    if [ -n "${PYTHON:-}" ] && [ -z "$oldest" ]; then
        oldest="PYTHON=$PYTHON does not run"
    fi
    refuse "Python 3.11 or newer is needed, ${oldest:-none was found}" "$(mend_python)"
}

check_venv() {
    if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        if have apt-get; then
            refuse "$python has no venv module" "sudo apt-get install python$(python_version "$python")-venv"
        fi
        refuse "$python has no venv module" "$(mend_python)"
    fi
}

check_java() {
    where=PATH
    java=java
    if [ -n "${JAVA_HOME:-}" ]; then
        where="JAVA_HOME ($JAVA_HOME)"
        java=$JAVA_HOME/bin/java
    fi
    have "$java" || refuse "Java 17 or newer is needed, none was found in $where" "$(mend_java)"
    # 1.8.0_392 counts as 8, 17.0.15 and 22-ea as what they begin with.
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | sed -n 1p)
    if [ -z "$major" ]; then
        refuse "Java 17 or newer is needed, the java in $where does not run" "$(mend_java)"
    elif [ "$major" -lt 17 ]; then
        refuse "Java 17 or newer is needed, the java in $where is $major" "$(mend_java)"
    fi
}

find_python
check_venv
check_java
echo "$python"

# One file, one target per service: docker build --target processor|sink|sweeper|console|tools|connect .
# Nothing is fetched but by pip (what requirements.txt locks, by hash), Ivy (what jvm/*.sha256 locks) and Maven, each
# with the registries and mirrors that it is configured for. docker-compose.yml passes the versions on from .env.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG JRE_IMAGE=eclipse-temurin:17-jre
ARG MAVEN_IMAGE=maven:3-eclipse-temurin-17

# ---------------------------------------------------------------- Python packages
FROM ${PYTHON_IMAGE} AS core-packages
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.txt requirements-build.txt pyproject.toml ./
COPY setup/locked_for.py setup/
RUN python -m venv /opt/waitreg
ENV PATH=/opt/waitreg/bin:$PATH
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --require-hashes --no-deps -r requirements-build.txt \
 && python setup/locked_for.py requirements.txt otel grpc schema-registry > locked.txt \
 && pip install --require-hashes --no-deps --no-build-isolation -r locked.txt

FROM core-packages AS spark-packages
RUN --mount=type=cache,target=/root/.cache/pip \
    python setup/locked_for.py requirements.txt sink sweeper otel > locked.txt \
 && pip install --require-hashes --no-deps --no-build-isolation -r locked.txt

FROM core-packages AS console-packages
RUN --mount=type=cache,target=/root/.cache/pip \
    python setup/locked_for.py requirements.txt console > locked.txt \
 && pip install --require-hashes --no-deps --no-build-isolation -r locked.txt

# ---------------------------------------------------------------- this project, as a wheel
FROM core-packages AS wheel
COPY README.md LICENSE NOTICE ./
COPY wait_registry wait_registry
COPY processor processor
COPY sink sink
COPY sweeper sweeper
COPY waitreg waitreg
COPY sql sql
COPY jvm jvm
COPY connect-configs connect-configs
RUN pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheel .

FROM core-packages AS processor-python
COPY --from=wheel /wheel /wheel
RUN pip install --no-deps --no-index /wheel/*.whl \
 && pip uninstall --yes setuptools wheel packaging pip

FROM console-packages AS console-python
COPY --from=wheel /wheel /wheel
RUN pip install --no-deps --no-index /wheel/*.whl \
 && pip uninstall --yes setuptools wheel packaging pip

FROM spark-packages AS spark-python
COPY --from=wheel /wheel /wheel
RUN pip install --no-deps --no-index /wheel/*.whl

# ---------------------------------------------------------------- Java, and the jars
# A copy without links: in some builds the files of Java's configuration are links into /etc.
FROM ${JRE_IMAGE} AS java
RUN cp -rL /opt/java/openjdk /opt/jre

# Ivy comes inside pyspark. Only what names the jars stands here, so that a change elsewhere doesn't fetch them again.
FROM spark-packages AS ivy
# A proxy for Java, if there is one.
ARG JAVA_TOOL_OPTIONS
COPY --from=java /opt/jre /opt/jre
ENV JAVA_HOME=/opt/jre XDG_CACHE_HOME=/opt/cache
COPY jvm wait_registry_jvm
COPY wait_registry/__init__.py wait_registry/errors.py wait_registry/
COPY wait_registry/java wait_registry/java
# Without it this is no checkout, and the jars go into the cache.
RUN rm pyproject.toml

FROM ivy AS spark-jars
RUN --mount=type=cache,target=/root/.ivy2,sharing=locked python -m wait_registry.java.fetching fetch spark

FROM ivy AS connect-jars
RUN --mount=type=cache,target=/root/.ivy2,sharing=locked python -m wait_registry.java.fetching fetch connect debezium-jdbc debezium-postgres

# The plugin's tests need the golden vectors; they run where the project is checked, not in every build.
FROM ${MAVEN_IMAGE} AS plugin
ARG JAVA_TOOL_OPTIONS
WORKDIR /build
COPY connect-configs/plugin .
RUN --mount=type=cache,target=/root/.m2,sharing=locked \
    mvn --batch-mode --quiet --strict-checksums -Dmaven.test.skip=true -Dcheckstyle.skip=true package

# ---------------------------------------------------------------- what runs
FROM ${PYTHON_IMAGE} AS runtime
RUN groupadd --gid 10001 waitreg \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin waitreg
# The root file system may be read-only: what is written goes to /tmp.
ENV PATH=/opt/waitreg/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    WAITREG_TELEMETRY__HOST=0.0.0.0
# --chmod: a clone made under a strict umask has files that this user couldn't read.
COPY --chmod=0644 deploy/compose/healthy.py /opt/healthy.py
# waitreg.toml and a handler's module are looked for there.
WORKDIR /srv/waitreg
USER 10001:10001
EXPOSE 9464
ENTRYPOINT ["waitreg"]

FROM runtime AS processor
COPY --from=processor-python /opt/waitreg /opt/waitreg
HEALTHCHECK --interval=5s --timeout=10s --start-period=120s --retries=6 CMD ["python", "-IS", "/opt/healthy.py"]
CMD ["processor"]

# It needs console.authentication: it can be reached from outside of the container.
FROM runtime AS console
COPY --from=console-python /opt/waitreg /opt/waitreg
ENV WAITREG_CONSOLE__HOST=0.0.0.0
EXPOSE 8088
HEALTHCHECK --interval=5s --timeout=10s --start-period=120s --retries=6 CMD ["python", "-IS", "/opt/healthy.py", "8088"]
CMD ["console"]

FROM runtime AS spark
COPY --from=java /opt/jre /opt/jre
COPY --from=spark-jars /opt/cache/wait-registry/jars/spark /opt/jars/spark
COPY --from=spark-python /opt/waitreg /opt/waitreg
ENV JAVA_HOME=/opt/jre WAITREG_SPARK__JARS_DIR=/opt/jars/spark

FROM spark AS sink
HEALTHCHECK --interval=5s --timeout=10s --start-period=300s --retries=6 CMD ["python", "-IS", "/opt/healthy.py"]
CMD ["sink"]

FROM spark AS sweeper
HEALTHCHECK --interval=5s --timeout=10s --start-period=300s --retries=6 CMD ["python", "-IS", "/opt/healthy.py"]
CMD ["sweeper"]

# Every other command: topics create, db migrate, doctor, rebuild, query, connect, load, downstream, reconcile.
FROM spark AS tools
COPY --chmod=0644 deploy/compose/create_connectors.py /opt/create_connectors.py
USER 0:0
RUN install --directory --owner=10001 --group=10001 /evidence
USER 10001:10001
CMD ["--help"]

FROM ${JRE_IMAGE} AS connect
RUN groupadd --gid 10001 waitreg \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin waitreg \
 && mkdir -p /opt/connect/connectors /opt/connect/more-plugins
COPY --from=connect-jars /opt/cache/wait-registry/jars/connect /opt/connect/worker
COPY --from=connect-jars /opt/cache/wait-registry/jars/debezium-jdbc /opt/connect/plugins/debezium-jdbc
COPY --from=connect-jars /opt/cache/wait-registry/jars/debezium-postgres /opt/connect/plugins/debezium-postgres
COPY --from=plugin /build/target/waitreg-connect-*.jar /opt/connect/plugins/waitreg-connect/
COPY --chmod=0644 connect-configs/*.json /opt/connect/connectors/
COPY --chmod=0644 deploy/compose/connect/*.properties /opt/connect/
WORKDIR /opt/connect
USER 10001:10001
EXPOSE 8083
HEALTHCHECK --interval=5s --timeout=10s --start-period=300s --retries=6 \
    CMD ["curl", "--fail", "--silent", "--show-error", "--max-time", "4", "http://127.0.0.1:8083/health"]
ENTRYPOINT ["java", "-XX:MaxRAMPercentage=50", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC", \
    "-Dlog4j2.configurationFile=/opt/connect/log4j2.properties", "-cp", "/opt/connect/worker/*", \
    "org.apache.kafka.connect.cli.ConnectDistributed", "/opt/connect/worker.properties"]

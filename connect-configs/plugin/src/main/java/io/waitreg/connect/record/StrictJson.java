package io.waitreg.connect.record;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/**
 * Reads JSON as RFC 8259 has it and nothing beyond.
 *
 * <p>The worker's own parser (whichever version it has) also takes half surrogate pairs and more, which Postgres would
 * refuse; this one takes exactly what the registry's other readers take, and needs nothing of the worker.
 */
final class StrictJson {
  /** Stands for any number: no header holds one. */
  static final Object NUMBER = new Object();

  private static final int MAX_DEPTH = 1024;

  private final String text;
  private int at;
  private int depth;

  private StrictJson(String text) {
    this.text = text;
  }

  /**
   * Reads a document.
   *
   * @return a List, a Map in the order of its members (of members with one name the last counts, at the place of the
   *     first), a String, a Boolean, {@link #NUMBER} or null
   * @throws DataException it isn't JSON; the message never holds the document
   */
  static Object read(byte[] utf8) {
    String text = Utf8.strictly(utf8);
    if (text == null) {
      throw new DataException("headers JSON: saw " + utf8.length + " bytes that aren't UTF-8");
    }
    var json = new StrictJson(text);
    Object document = json.value();
    json.skipSpace();
    if (json.at < text.length()) {
      throw json.invalid("more behind the document");
    }
    return document;
  }

  private Object value() {
    skipSpace();
    char next = peek();
    return switch (next) {
      case '[' -> list();
      case '{' -> object();
      case '"' -> string();
      case 't' -> literal("true", Boolean.TRUE);
      case 'f' -> literal("false", Boolean.FALSE);
      case 'n' -> literal("null", null);
      default -> number();
    };
  }

  private List<Object> list() {
    enter();
    var items = new ArrayList<>();
    if (!taken(']')) {
      do {
        items.add(value());
      } while (taken(','));
      require(']');
    }
    depth--;
    return items;
  }

  private Map<String, Object> object() {
    enter();
    var members = new LinkedHashMap<String, Object>();
    if (!taken('}')) {
      do {
        skipSpace();
        String name = string();
        require(':');
        members.put(name, value());
      } while (taken(','));
      require('}');
    }
    depth--;
    return members;
  }

  private void enter() {
    at++;
    if (++depth > MAX_DEPTH) {
      throw invalid("more than " + MAX_DEPTH + " levels");
    }
  }

  private String string() {
    if (peek() != '"') {
      throw invalid("no string where one must stand");
    }
    at++;
    var content = new StringBuilder();
    while (peek() != '"') {
      char next = text.charAt(at++);
      if (next < 0x20) {
        throw invalid("a control character in a string");
      }
      content.append(next == '\\' ? escaped() : next);
    }
    at++;
    // UTF-8 holds none, so one that is here came by an escape.
    if (Utf8.hasLoneSurrogate(content.toString())) {
      throw invalid("half of a surrogate pair");
    }
    return content.toString();
  }

  private char escaped() {
    char kind = peek();
    at++;
    return switch (kind) {
      case '"', '\\', '/' -> kind;
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'n' -> '\n';
      case 'r' -> '\r';
      case 't' -> '\t';
      case 'u' -> codeUnit();
      default -> throw invalid("an unknown escape");
    };
  }

  private char codeUnit() {
    int unit = 0;
    for (int end = at + 4; at < end; at++) {
      char digit = peek();
      int hex = digit < 0x80 ? Character.digit(digit, 16) : -1;
      if (hex < 0) {
        throw invalid("an escape without four hexadecimal digits");
      }
      unit = unit << 4 | hex;
    }
    return (char) unit;
  }

  private Object literal(String word, Object meaning) {
    if (!text.startsWith(word, at)) {
      throw invalid("an unknown word");
    }
    at += word.length();
    return meaning;
  }

  private Object number() {
    int start = at;
    skipIf("-");
    if (!skipIf("0")) {
      skipDigits();
    }
    if (skipIf(".")) {
      skipDigits();
    }
    if (skipIf("eE")) {
      skipIf("+-");
      skipDigits();
    }
    if (Double.isInfinite(Double.parseDouble(text.substring(start, at)))) {
      throw invalid("a number beyond any");
    }
    return NUMBER;
  }

  private void skipDigits() {
    int start = at;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
      at++;
    }
    if (at == start) {
      throw invalid("no digit where one must stand");
    }
  }

  private boolean skipIf(String characters) {
    boolean found = at < text.length() && characters.indexOf(text.charAt(at)) >= 0;
    at += found ? 1 : 0;
    return found;
  }

  private boolean taken(char expected) {
    skipSpace();
    return skipIf(Character.toString(expected));
  }

  private void require(char expected) {
    if (!taken(expected)) {
      throw invalid("no '" + expected + "' where one must stand");
    }
  }

  private char peek() {
    if (at >= text.length()) {
      throw invalid("its end too early");
    }
    return text.charAt(at);
  }

  private void skipSpace() {
    while (skipIf(" \t\n\r")) {
      continue;
    }
  }

  private DataException invalid(String what) {
    return new DataException("headers JSON: saw " + what + " at character " + at + " of " + text.length());
  }
}

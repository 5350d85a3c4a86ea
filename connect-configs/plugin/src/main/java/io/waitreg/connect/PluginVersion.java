package io.waitreg.connect;

/** The version that a worker shows for this plugin: that of the jar. */
final class PluginVersion {
  private PluginVersion() {}

  static String get() {
    String version = PluginVersion.class.getPackage().getImplementationVersion();
    return version == null ? "undefined" : version;
  }
}

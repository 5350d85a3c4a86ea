package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.ServiceLoader;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.transforms.Transformation;
import org.junit.jupiter.api.Test;

class PluginDiscoveryTest {
  @Test
  void aWorkerFindsThePluginWithoutScanning() {
    assertEquals(Set.of(WaitRecordConverter.class), found(Converter.class));
    assertEquals(
        Set.of(WaitRecordToRow.class, DeadLetterToRow.class, JsonHeadersToKafkaHeaders.class),
        found(Transformation.class));
  }

  @Test
  void everyPartSaysItsVersionAndItsOptions() {
    assertNotNull(new WaitRecordConverter().config());
    for (Transformation<?> transform : ServiceLoader.load(Transformation.class)) {
      assertNotNull(((Versioned) transform).version());
      assertNotNull(transform.config());
      transform.close();
    }
  }

  private static Set<Class<?>> found(Class<?> service) {
    return ServiceLoader.load(service).stream()
        .map(ServiceLoader.Provider::type)
        .filter(type -> type.getName().startsWith("io.waitreg."))
        .collect(Collectors.toSet());
  }
}

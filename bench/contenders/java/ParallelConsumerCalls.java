package io.waitreg.bench;

import io.confluent.parallelconsumer.vertx.VertxParallelEoSStreamProcessor;
import io.vertx.core.buffer.Buffer;
import java.util.List;
import java.util.Map;

/** The Parallel Consumer's Vert.x module: POSTs each record's value with the client that it makes, until it is ended. */
public final class ParallelConsumerCalls {
  private ParallelConsumerCalls() {}

  /** Takes the arguments of {@link ParallelConsumerFlow} that it needs, and `url`. */
  public static void main(String[] given) {
    Map<String, String> arguments = ParallelConsumerFlow.arguments(given);
    String url = arguments.get("url");
    VertxParallelEoSStreamProcessor<byte[], byte[]> consumer =
        new VertxParallelEoSStreamProcessor<>(ParallelConsumerFlow.options(arguments));
    consumer.subscribe(List.of(arguments.get("topic")));
    consumer.vertxHttpWebClient(
        (client, context) ->
            client
                .postAbs(url)
                .putHeader("content-type", "application/octet-stream")
                .sendBuffer(Buffer.buffer(context.getSingleConsumerRecord().value())),
        sent -> {});
  }
}

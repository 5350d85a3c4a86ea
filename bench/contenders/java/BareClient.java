package io.waitreg.bench;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.Executors;

/** The JDK's HTTP client without Kafka: so many calls at once, until it is ended. */
public final class BareClient {
  private static final int BODY_BYTES = 200;
  private static final int THREADS = Runtime.getRuntime().availableProcessors();

  private final HttpClient client = HttpClient.newBuilder().executor(Executors.newFixedThreadPool(THREADS)).version(HttpClient.Version.HTTP_1_1).build();
  private final HttpRequest request;

  private BareClient(String url) {
    request =
        HttpRequest.newBuilder(URI.create(url))
            .header("content-type", "application/octet-stream")
            .POST(BodyPublishers.ofByteArray(new byte[BODY_BYTES]))
            .build();
  }

  /** Takes the URL and the number of calls. */
  public static void main(String[] given) throws InterruptedException {
    // With a single thread, as on two cores, CompletableFuture starts a thread for each call instead: six times the CPU.
    System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", Integer.toString(Math.max(2, THREADS)));
    BareClient caller = new BareClient(given[0]);
    for (int call = 0; call < Integer.parseInt(given[1]); call++) {
      caller.call();
    }
    Thread.currentThread().join();
  }

  private void call() {
    client.sendAsync(request, BodyHandlers.discarding()).whenComplete(this::next);
  }

  private void next(HttpResponse<Void> response, Throwable problem) {
    if (problem != null || response.statusCode() != 200) {
      System.err.println("a call failed: " + (problem == null ? response : problem));
      Runtime.getRuntime().halt(1);
    }
    call();
  }
}

package io.waitreg.bench;

import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.http.HttpVersion;

/**
 * The service that is called: answers each POST, at once or after a while, and a GET with how many POSTs it has answered.
 *
 * <p>A POST by HTTP/2 is taken for a gRPC call and gets an empty message, whatever its method is.
 */
public final class CalledServer {
  private static final Buffer EMPTY_MESSAGE = Buffer.buffer(new byte[5]);

  private final Vertx vertx = Vertx.vertx();
  private final long delayMs;
  // All requests are handled by one event loop.
  private long answered;

  private CalledServer(long delayMs) {
    this.delayMs = delayMs;
  }

  /** Serves on a port of the loopback interface until the process is ended. */
  public static void main(String[] given) {
    CalledServer server = new CalledServer(Long.parseLong(given[1]));
    server
        .vertx
        .createHttpServer()
        .requestHandler(server::take)
        .listen(Integer.parseInt(given[0]), "127.0.0.1")
        .onFailure(
            problem -> {
              problem.printStackTrace();
              Runtime.getRuntime().halt(1);
            });
  }

  private void take(HttpServerRequest request) {
    if (request.method() != HttpMethod.POST) {
      request.response().end(Long.toString(answered));
    } else if (delayMs == 0) {
      request.endHandler(whole -> answer(request));
    } else {
      request.endHandler(whole -> vertx.setTimer(delayMs, timer -> answer(request)));
    }
  }

  private void answer(HttpServerRequest request) {
    HttpServerResponse response = request.response();
    answered++;
    if (request.version() == HttpVersion.HTTP_2) {
      response.putHeader("content-type", "application/grpc").putTrailer("grpc-status", "0").end(EMPTY_MESSAGE);
    } else {
      response.end();
    }
  }
}

import type { IncomingMessage } from 'node:http';

/**
 * Reads the rest of a body behind the answer that ends its connection, and closes that only then: who is still sending
 * would hear that the connection broke, and not the answer (RFC 9112, 9.6). `timeoutMs`: for how long nothing may come.
 */
export function closeBehindBody(request: IncomingMessage, timeoutMs: number): void {
  const { socket } = request;
  const close = socket.destroySoon.bind(socket);
  // Node calls it behind the last answer of a connection.
  socket.destroySoon = () => {
    if (request.complete) {
      close();
      return;
    }
    socket.end();
    socket.setTimeout(timeoutMs);
    request.once('end', close);
  };
}

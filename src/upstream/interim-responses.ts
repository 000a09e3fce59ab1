import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** How an interim response begins. */
const beginning = 'HTTP/1.1 100 ';
/**
 * Any minor version; a carriage return follows if there is no reason phrase. 101 (switching protocols) is not interim.
 */
const interim = /^HTTP\/1\.\d 1(?!01)\d\d[ \r]$/;
const end = '\r\n\r\n';
const maxBytes = 16_384;

/**
 * Removes interim responses (1xx) from what a connection receives. A client must ignore unexpected ones (RFC 9110,
 * section 15.2), but undici closes the connection at `100 Continue` (https://github.com/nodejs/undici/issues/197). This
 * file can be deleted when that issue is fixed.
 */
export function withoutInterim(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    connector(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      dropInterim(socket);
      callback(null, socket);
    });
  };
}

/** undici pulls from the socket with `read`. A response begins with the first bytes after a request was written. */
function dropInterim(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isAtBeginning = true;
  let buffered: Buffer = Buffer.alloc(0);
  socket.write = (...args: unknown[]) => {
    isAtBeginning = true;
    return write(...args);
  };
  socket.read = (size) => {
    if (!isAtBeginning) return read(size);
    for (let chunk = read(); chunk !== null; chunk = read()) {
      buffered = afterInterim(Buffer.concat([buffered, chunk]));
      if (buffered.length > 0 && !mayBeInterim(buffered)) {
        const answer = buffered;
        isAtBeginning = false;
        buffered = Buffer.alloc(0);
        return answer;
      }
    }
    return null;
  };
}

/** The bytes after all complete interim responses at the beginning. */
function afterInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  for (let at = rest.indexOf(end); at !== -1 && mayBeInterim(rest); at = rest.indexOf(end)) {
    rest = rest.subarray(at + end.length);
  }
  return rest;
}

/** Whether the bytes are, or may become, the beginning of an interim response. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, beginning.length);
  return bytes.length <= maxBytes && interim.test(start + beginning.slice(start.length));
}

import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** How an interim answer begins. */
const beginning = 'HTTP/1.1 100 ';
/** Of any minor version; without a reason a carriage return follows. Protocols that are switched (101) are none. */
const interim = /^HTTP\/1\.\d 1(?!01)\d\d[ \r]$/;
const end = '\r\n\r\n';
const maximumBytes = 16_384;

/**
 * Takes interim answers (1xx) out of what a connection receives. A client has to pass over those that it did not ask for
 * (RFC 9110, section 15.2), but undici takes a `100 Continue` for a broken answer.
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

/** undici pulls from the socket with `read`. An answer begins with the first bytes after a request was written. */
function dropInterim(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  let isAtBeginning = true;
  let held: Buffer = Buffer.alloc(0);
  socket.write = (...given: unknown[]) => {
    isAtBeginning = true;
    return write(...given);
  };
  socket.read = (size) => {
    if (!isAtBeginning) return read(size);
    for (let chunk = read(); chunk !== null; chunk = read()) {
      held = afterInterim(Buffer.concat([held, chunk]));
      if (held.length > 0 && !mayBeInterim(held)) {
        const answer = held;
        isAtBeginning = false;
        held = Buffer.alloc(0);
        return answer;
      }
    }
    return null;
  };
}

/** What follows every whole interim answer at the beginning. */
function afterInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  for (let at = rest.indexOf(end); at !== -1 && mayBeInterim(rest); at = rest.indexOf(end)) {
    rest = rest.subarray(at + end.length);
  }
  return rest;
}

/** Whether the bytes are the beginning of an interim answer, or may become one. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, beginning.length);
  return bytes.length <= maximumBytes && interim.test(start + beginning.slice(start.length));
}

import type { Dispatcher } from 'undici';

/** Header values by lower-case name. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A whole answer, whatever it says. */
export type Answered = { type: 'answered'; status: number; headers: Headers; text: string };

/** No whole answer came. `sent`: bytes of the request may have left; when false, certainly none did. */
export type Failed = { type: 'failed'; sent: boolean; error: Error };

/** What came of one request on the wire. */
export type Exchange = Answered | Failed;

const maximumAnswerBytes = 1_048_576;

/**
 * Makes one request and reads its whole answer, up to 1 MiB; never rejects.
 *
 * It speaks to the dispatcher itself, because only its handler is told the moment before the first byte
 * is written: `sent` is knowledge, not a guess from error codes. The signal ends it at once, also while it
 * waits for a connection, and a request that has not begun by then is never written.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<Exchange> {
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  let controller: Dispatcher.DispatchController | null = null;
  let settled = false;

  const settle = (outcome: Exchange): void => {
    settled = true;
    signal.removeEventListener('abort', onAbort);
    resolve(outcome);
  };
  const fail = (error: Error): void => {
    if (settled) return;
    settle({ type: 'failed', sent: controller !== null, error });
    controller?.abort(error);
  };
  const onAbort = (): void => {
    const late = controller === null ? 'no connection in time' : 'no whole answer in time';
    fail(new Error(isTimeout(signal.reason) ? late : 'aborted'));
  };

  if (signal.aborted) {
    onAbort();
    return promise;
  }
  signal.addEventListener('abort', onAbort);

  let status = 0;
  let headers: Headers = {};
  let bytes = 0;
  const chunks: Buffer[] = [];
  dispatcher.dispatch(
    { ...request, headersTimeout: 0, bodyTimeout: 0 },
    {
      onRequestStart(started) {
        // A second start would be a repetition: it must never be written.
        if (settled || controller !== null) started.abort(new Error('already over'));
        else controller = started;
      },
      onResponseStart(_, statusCode, itsHeaders) {
        status = statusCode;
        headers = itsHeaders;
      },
      onResponseData(_, chunk) {
        bytes += chunk.length;
        if (bytes <= maximumAnswerBytes) chunks.push(chunk);
        else fail(new Error('the answer is larger than 1 MiB'));
      },
      onResponseEnd() {
        settle({ type: 'answered', status, headers, text: new TextDecoder().decode(Buffer.concat(chunks)) });
      },
      onResponseError(_, error) {
        fail(error);
      },
    },
  );
  return promise;
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}

/** The header's value, the first one where it was sent more than once; null when absent. */
export function headerOf(headers: Headers, name: string): string | null {
  return [headers[name]].flat()[0] ?? null;
}

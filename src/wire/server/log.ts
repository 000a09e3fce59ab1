/** The fields of the log line of a request: never a license key, a secret or a query. */
export type RequestLine = {
  /** Null if the request could not be parsed; the route is also null if no route matches. */
  method: string | null;
  route: string | null;
  status: number;
  code: string | null;
  requestId: string;
  durationMs: number;
};

/** The fields of a log line, with their names in the log. */
export function serializeRequestLine({
  requestId,
  durationMs,
  ...same
}: RequestLine): Record<string, unknown> {
  return { ...same, request_id: requestId, duration_ms: durationMs };
}

/** The fields of the log line of an unexpected error. */
export function serializeErrorLine(requestId: string, error: unknown): Record<string, unknown> {
  return { request_id: requestId, err: error };
}

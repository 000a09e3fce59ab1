/** What a log line tells of a request: never a license key, a secret or a query. */
export type RequestLine = {
  /** Null when the request could not be parsed; the route is null where there is none. */
  method: string | null;
  route: string | null;
  status: number;
  code: string | null;
  requestId: string;
  durationMs: number;
};

/** Names the fields of a log line. */
export function serializeRequestLine({
  requestId,
  durationMs,
  ...same
}: RequestLine): Record<string, unknown> {
  return { ...same, request_id: requestId, duration_ms: durationMs };
}

/** Names the fields of a log line about what was not expected. */
export function serializeErrorLine(requestId: string, error: unknown): Record<string, unknown> {
  return { request_id: requestId, err: error };
}

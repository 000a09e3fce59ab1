/** Of the table of problems: those that are not of the request, but of this server or its upstream (status 5xx). */
export const serverProblems = {
  internal_error: {
    status: 500,
    title: 'Something failed here',
    remedy: 'Look for the request_id in the log, and report what it says.',
  },
  coupons_not_configured: {
    status: 501,
    title: 'Coupons are not configured',
    remedy: 'Set upstream.api_key.',
  },
  upstream_unreachable: {
    status: 503,
    title: 'The upstream cannot be reached',
    remedy: 'Try again later. Nothing was changed, and nothing is known here to answer from.',
  },
  verdict_expired: {
    status: 503,
    title: 'The last answer of the upstream is too old',
    remedy: 'Reconnect the agent to its upstream: the key is past freshness.grace.',
  },
  starting: {
    status: 503,
    title: 'Starting',
    remedy: 'Try again after Retry-After.',
  },
  draining: {
    status: 503,
    title: 'Shutting down',
    remedy: 'Try again after Retry-After, once it has been restarted.',
  },
  storage_failed: {
    status: 503,
    title: 'The storage failed',
    remedy: 'Repair the disk: the process ends with exit code 74 for its supervisor. Nothing was changed.',
  },
  storage_unavailable: {
    status: 503,
    title: 'The database cannot be used',
    remedy: 'Try again later. Nothing was changed; it goes on by itself once the database is there again.',
  },
  outcome_unknown: {
    status: 503,
    title: 'Nobody can tell whether it was done',
    remedy:
      'Look whether it was done before it is sent again. With an idempotency key it can be sent again at once.',
  },
  storage_full: {
    status: 507,
    title: 'The storage is full',
    remedy: 'Free disk space, or raise sync.max_pending. Nothing was changed, and verifying goes on.',
  },
  loop_detected: {
    status: 508,
    title: 'This agent has asked itself',
    remedy:
      'Set upstream.connect_to: the name in upstream.base_url leads to this very agent. Nothing was changed.',
  },
} as const;

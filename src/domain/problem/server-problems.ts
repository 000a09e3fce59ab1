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
    remedy: 'Try again later. Nothing was changed, and there is no earlier answer to fall back on.',
  },
  verdict_expired: {
    status: 503,
    title: 'The last answer of the upstream is too old',
    remedy: 'Restore the connection from the agent to its upstream: the key is past freshness.grace.',
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
    remedy:
      'Repair the disk. The process ends with exit code 74, so that its supervisor restarts it. Unless the detail says that nothing was changed, check whether it was done before you send it again; with an idempotency key it can be sent again as it is.',
  },
  storage_unavailable: {
    status: 503,
    title: 'The database cannot be used',
    remedy:
      'Try again later: it recovers by itself once the database is available again. The detail says where nothing was changed.',
  },
  outcome_unknown: {
    status: 503,
    title: 'Nobody can tell whether it was done',
    remedy:
      'Check whether it was done before you send it again. With an idempotency key it can be sent again at once.',
  },
  storage_full: {
    status: 507,
    title: 'The storage is full',
    remedy: 'Free disk space, or raise sync.max_pending. Nothing was changed, and verifying still works.',
  },
  loop_detected: {
    status: 508,
    title: 'This agent has asked itself',
    remedy:
      'Set upstream.connect_to: the name in upstream.base_url resolves to this very agent. Nothing was changed.',
  },
} as const;

/** Problems of this server or its upstream (status 5xx), a part of the table of problems. */
export const serverProblems = {
  internal_error: {
    status: 500,
    title: 'Internal error',
    remedy: 'Look for the request_id in the log, and report what it says.',
  },
  coupons_not_configured: {
    status: 501,
    title: 'Coupons are not configured',
    remedy: 'Set upstream.api_key.',
  },
  not_offered_by_holder: {
    status: 501,
    title: 'A holder does not offer this',
    remedy: 'Ask the store: a holder only has leases of license keys.',
  },
  not_offered_by_store: {
    status: 501,
    title: 'The store does not offer this',
    remedy: 'Do it at the store itself.',
  },
  leases_not_set_up: {
    status: 503,
    title: 'Leases are not set up here',
    remedy: 'Run: latchkey lease setup.',
  },
  clock_suspect: {
    status: 503,
    title: 'The clock of this machine may be wrong',
    remedy:
      'Run latchkey doctor on the machine that issues leases: it says which clocks differ. The issuer signs nothing until they agree.',
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
    title: 'The database is unavailable',
    remedy:
      'Try again later: it recovers by itself once the database is available again. The detail says where nothing was changed.',
  },
  outcome_unknown: {
    status: 503,
    title: 'It is unknown whether the change was made',
    remedy:
      'Check whether it was done before you send it again. With an idempotency key it can be sent again at once.',
  },
  storage_full: {
    status: 507,
    title: 'The storage is full',
    remedy: 'Free disk space, or raise sync.max_pending. Nothing was changed, and verifying still works.',
  },
  too_many_agents: {
    status: 507,
    title: 'The product or account has too many agents',
    remedy: 'Forget agents that are gone: latchkey agent list, latchkey agent forget NUMBER.',
  },
  too_many_keys: {
    status: 507,
    title: 'The agent follows too many license keys',
    remedy: 'Stop following keys that are not asked about.',
  },
  loop_detected: {
    status: 508,
    title: 'The agent has called itself',
    remedy:
      'Set upstream.connect_to: the name in upstream.base_url resolves to this very agent. Nothing was changed.',
  },
} as const;

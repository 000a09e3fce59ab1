export const limits = {
  kind: 'section',
  purpose: 'How much callers may ask of this process. A request over a limit is refused, never truncated.',
  reload: 'restart',
  keys: {
    header_timeout: {
      kind: 'wait',
      default: '5s',
      purpose: 'How long the headers of a request may take to arrive.',
    },
    header_count: {
      kind: 'count',
      default: 40,
      unit: 'headers',
      purpose: 'The maximum number of headers in a request.',
    },
    header_bytes: {
      kind: 'size',
      default: '8KiB',
      purpose: 'The maximum size of all headers of a request together.',
    },
    request_timeout: {
      kind: 'wait',
      default: '10s',
      purpose: 'How long a whole request may take to arrive; its answer may take longer.',
    },
    body_bytes: {
      kind: 'size',
      default: '16KiB',
      purpose:
        'The maximum size of a body; at least 256 KiB for a cart or a coupon, 2 MiB for a preload and 4 MiB for an import.',
    },
    parameters: {
      kind: 'count',
      default: 32,
      unit: 'parameters',
      purpose: 'The maximum number of parameters in a query or a form.',
    },
    connections: {
      kind: 'count',
      default: 256,
      unit: 'connections',
      purpose: 'The maximum number of open connections per listener.',
    },
    rate: {
      kind: 'rateOrNone',
      default: 0,
      unit: 'requests a second',
      reload: 'applies',
      purpose: 'The maximum request rate of one credential; 0 means no limit.',
    },
    misses: {
      kind: 'rate',
      default: 2,
      unit: 'look-ups a second',
      reload: 'applies',
      purpose:
        'How often one credential may have an agent look up a key that is not known here; each product that is asked counts, and a key that exists does not. A burst may be ten seconds’ worth. Further look-ups wait, half as many as there may be connections, and at most 30 s; more are refused.',
    },
    failed_rate: {
      kind: 'rate',
      default: 5,
      unit: 'requests a second',
      reload: 'applies',
      purpose:
        'How many requests with a wrong credential, from all callers together, are answered 401; any more get 429.',
    },
  },
} as const;

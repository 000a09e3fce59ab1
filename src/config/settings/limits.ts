export const limits = {
  kind: 'section',
  purpose: 'What callers may ask of this process. Beyond a limit a request is refused; nothing is cut.',
  reload: 'restart',
  keys: {
    header_timeout: {
      kind: 'wait',
      default: '5s',
      purpose: 'How long the head of a request may take to arrive.',
    },
    header_count: { kind: 'count', default: 40, unit: 'headers', purpose: 'The most headers of a request.' },
    header_bytes: { kind: 'size', default: '8KiB', purpose: 'The most bytes of all headers of a request.' },
    request_timeout: {
      kind: 'wait',
      default: '10s',
      purpose: 'How long a whole request may take to arrive; its answer may take longer.',
    },
    body_bytes: { kind: 'size', default: '16KiB', purpose: 'The most bytes of a body.' },
    parameters: {
      kind: 'count',
      default: 32,
      unit: 'parameters',
      purpose: 'The most parameters of a query or a form.',
    },
    connections: {
      kind: 'count',
      default: 256,
      unit: 'connections',
      purpose: 'The most open connections of each listener.',
    },
    rate: {
      kind: 'rateOrNone',
      default: 0,
      unit: 'requests a second',
      reload: 'applies',
      purpose: 'The most that one credential may send; 0 is no limit.',
    },
    misses: {
      kind: 'rate',
      default: 2,
      unit: 'look-ups a second',
      reload: 'applies',
      purpose:
        'How often one credential may have an agent look up a key that is not known here, each product asked for it counted; a burst may be ten seconds’ worth.',
    },
    failed_rate: {
      kind: 'rate',
      default: 5,
      unit: 'requests a second',
      reload: 'applies',
      purpose:
        'How many requests with a wrong credential, of all callers together, are answered 401; those beyond get 429.',
    },
  },
} as const;

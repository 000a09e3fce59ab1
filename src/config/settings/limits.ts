import { z } from 'zod';
import { section } from '../section.ts';
import { count, rate, rateOrZero, size, wait } from '../setting-types.ts';

export const limits = section(
  z.strictObject({
    header_timeout: wait
      .prefault('5s')
      .meta({ description: 'How long the headers of a request may take to arrive.' }),
    header_count: count
      .prefault(40)
      .meta({ description: 'The maximum number of headers in a request.', unit: 'headers' }),
    header_bytes: size
      .prefault('8KiB')
      .meta({ description: 'The maximum size of all headers of a request together.' }),
    request_timeout: wait.prefault('10s').meta({
      description: 'How long a whole request may take to arrive; the response may take longer.',
    }),
    body_bytes: size.prefault('16KiB').meta({
      description:
        'The maximum size of a body; at least 256 KiB for a cart or a coupon, 2 MiB for a preload and 4 MiB for an import.',
    }),
    parameters: count.prefault(32).meta({
      description: 'The maximum number of parameters in a query or a form.',
      unit: 'parameters',
    }),
    connections: count.prefault(256).meta({
      description: 'The maximum number of open connections per listener.',
      unit: 'connections',
    }),
    rate: rateOrZero.prefault(0).meta({
      description: 'The maximum request rate of one credential; 0 means no limit.',
      unit: 'requests a second',
      reload: 'applies',
    }),
    misses: rate.prefault(2).meta({
      description:
        'How often one credential may make an agent look up unknown keys at the upstream (src/http/README.md, Limits). Each product counts. Keys that exist do not count.',
      unit: 'look-ups a second',
      reload: 'applies',
    }),
    failed_rate: rate.prefault(5).meta({
      description:
        'How many requests with a wrong credential get 401, for all callers together; further requests get 429.',
      unit: 'requests a second',
      reload: 'applies',
    }),
  }),
).meta({
  description: 'Limits for callers. A request over a limit is refused, never truncated.',
  reload: 'restart',
});

import { TokenBucket, type Rate } from '../../domain/token-bucket.ts';
import type { Log } from '../../service/ports.ts';

/** How many refusals are logged: anybody on the internet can send requests to the public listener. */
const rate: Rate = { perSecond: 1, burst: 30 };

/**
 * The log of a public listener: refused requests get at most one line a second in the long run. A line has the number of
 * refusals before it that were left out (`unlogged`). All other lines are written.
 *
 * @param now The time in epoch ms.
 */
export function quietLog(log: Log, now: () => number): Log {
  const bucket = new TokenBucket();
  let unlogged = 0;
  return {
    debug: (fields, message) => log.debug(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    info(fields, message) {
      if (message !== 'refused') {
        log.info(fields, message);
        return;
      }
      if (bucket.take(rate, now()) > 0) {
        unlogged += 1;
        return;
      }
      log.info(unlogged === 0 ? fields : { ...fields, unlogged }, message);
      unlogged = 0;
    },
  };
}

import { done } from '../domain/problem/problem.ts';
import type { LicenseResponse, Licensing } from '../service/answers.ts';
import type { Metrics } from './metrics.ts';

type Counts = Pick<Metrics, 'countVerdict' | 'countUse'>;

/** The same licensing. It counts every verify and every use that succeeds, also verifies that a cache answers. */
export function countedLicensing(licensing: Licensing, counts: Counts): Licensing {
  return {
    change: async (request, signal) => {
      const result = await licensing.change(request, signal);
      if (result.ok && request.trigger === 'usage') counts.countUse();
      return result;
    },
    history: (...asked) => licensing.history(...asked),
    verify: async (...asked) => {
      const result = await licensing.verify(...asked);
      if (!result.ok) return result;
      counts.countVerdict(result.value);
      return done(countingCached(result.value, counts));
    },
  };
}

function countingCached(answer: LicenseResponse, counts: Counts): LicenseResponse {
  const { cacheable } = answer;
  if (cacheable === undefined) return answer;
  const onServed = (): void => {
    counts.countVerdict(answer);
    cacheable.onServed();
  };
  return { ...answer, cacheable: { ...cacheable, onServed } };
}

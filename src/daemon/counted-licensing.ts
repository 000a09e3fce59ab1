import { done } from '../domain/problem/problem.ts';
import type { LicenseAnswer, Licensing } from '../service/answers.ts';
import type { Metrics } from './metrics.ts';

type Counts = Pick<Metrics, 'countVerdict' | 'countUse'>;

/** The same licensing, with every verify and every use that it answers counted. */
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
      return done(countingRepeats(result.value, counts));
    },
    verifyNow: (...asked) => {
      const answer = licensing.verifyNow?.(...asked) ?? null;
      return answer && countingRepeats(answer, counts);
    },
  };
}

function countingRepeats<Answer extends LicenseAnswer>(answer: Answer, counts: Counts): Answer {
  const { repeat } = answer;
  if (repeat === undefined) return answer;
  const repeated = (): void => {
    counts.countVerdict(answer);
    repeat.repeated();
  };
  return { ...answer, repeat: { ...repeat, repeated } };
}

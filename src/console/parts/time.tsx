import { fromNow, longTime } from '../format.ts';

/** An instant as people say it; the title has the date. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={longTime(at)}>
      {fromNow(at)}
    </time>
  );
}

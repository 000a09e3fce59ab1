import { dayText, duration, fromNow, longTime } from '../format.ts';

const instantInText = /(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2}))/;

/** A sentence of the daemon, with its instants in the time zone of the browser. */
export function Sentence({ text }: { text: string }) {
  // The parts with an odd index are what the group of the pattern matched.
  return text
    .split(instantInText)
    .map((part, index) => (index % 2 === 1 ? <ExactTime key={index} at={part} /> : part));
}

/** An instant with its date, for a record. */
export function ExactTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={fromNow(at)}>
      {longTime(at)}
    </time>
  );
}

/** The day of an instant, for a term such as `until 3 May 2026`; the title has the time. */
export function Day({ at }: { at: string }) {
  return (
    <time dateTime={at} title={longTime(at)}>
      {dayText(at)}
    </time>
  );
}

/** How long something has lasted; the title has its start. */
export function TimeSince({ at }: { at: string }) {
  return (
    <time dateTime={at} title={longTime(at)}>
      {duration(Math.max(0, Date.now() - Date.parse(at)) / 1000)}
    </time>
  );
}

/** An instant as people say it; the title has the date. Null: never. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return <>never</>;
  return (
    <time dateTime={at} title={longTime(at)}>
      {fromNow(at)}
    </time>
  );
}

import { minuteMs } from '../../../../domain/time.ts';

/** Writes an instant (epoch ms) for a person. The time zone of the buyer is not known. */
export type WriteInstant = (at: number) => string;

const day = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const;

export function dateFormat(locale: string): WriteInstant {
  const format = new Intl.DateTimeFormat(locale, day);
  return (at) => format.format(at);
}

/** Rounded up to the minute: what happens at the instant has then happened. */
export function timeFormat(locale: string): WriteInstant {
  const format = new Intl.DateTimeFormat(locale, {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
  return (at) => format.format(Math.ceil(at / minuteMs) * minuteMs);
}

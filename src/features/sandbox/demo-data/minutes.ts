import { stepStart, type SeriesValues } from '../../console/domain/series.ts';
import { dayMs, minuteMs } from '../../../domain/time.ts';
import type { SeededRandom, PastWriter } from './past-writer.ts';

const tenMinutesMs = 10 * minuteMs;

/** When the upstream was down (epoch ms). */
export type Outage = { from: number; to: number };

type Minutes = {
  writer: PastWriter;
  random: SeededRandom;
  end: number;
  /** Null on an authority, which has no upstream. */
  outage: Outage | null;
  /** Verifies a minute in the busiest hour. */
  busiest: number;
};

/** Records what an authority or an agent did in each minute of the last day, and in each ten minutes of a month. */
export async function writeMinutes(minutes: Minutes): Promise<void> {
  const { writer, end } = minutes;
  const dayStart = stepStart(end - dayMs, 600);
  const record = (at: number, length: number) =>
    writer.run('recordSeries', { at, values: valuesAt(minutes, at, length) }, { at });
  for (let at = stepStart(end - 30 * dayMs, 600); at < dayStart; at += tenMinutesMs) await record(at, 10);
  for (let at = dayStart; at < end - minuteMs; at += minuteMs) await record(at, 1);
}

/** `length`: minutes. */
function valuesAt({ random, outage, busiest }: Minutes, at: number, length: number): SeriesValues {
  const verifies = Math.round(length * busiest * liveliness(at) * (0.75 + random.fraction() / 2));
  const uses = Math.round(verifies * 0.07 * random.fraction() * 2);
  if (outage === null) return { verifies, uses, pending: null, oldestAgeS: null, upstream: null };
  const isDown = at >= outage.from && at < outage.to;
  // After the outage, the changes that waited are sent within twenty minutes.
  const left = at < outage.to ? 1 : Math.max(0, 1 - (at - outage.to) / (20 * minuteMs));
  const waitedMs = Math.min(at, outage.to) - outage.from;
  const pending = waitedMs > 0 ? Math.round((waitedMs / minuteMs) * 0.35 * left) : 0;
  const oldestAgeS = pending === 0 ? null : Math.round((at - outage.from) / 1000);
  return { verifies, uses, pending, oldestAgeS, upstream: isDown ? 'down' : 'up' };
}

/** From 0 to 1: most people work in the afternoon, few at night and on weekends. */
function liveliness(at: number): number {
  const date = new Date(at);
  const hour = date.getUTCHours() + date.getUTCMinutes() / 60;
  const isWeekend = [0, 6].includes(date.getUTCDay());
  const ofHour = 0.06 + 0.94 * Math.max(0, Math.sin(((hour - 5) / 17) * Math.PI));
  return ofHour * (isWeekend ? 0.35 : 1);
}

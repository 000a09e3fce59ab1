import { useState } from 'preact/hooks';
import { clockTime, count, shortDay } from '../format.ts';
import type { Tone } from './notice.tsx';

const width = 600;
const height = 64;

/** Values over time: the start in epoch ms, and the length of a step. */
export type Span = { readonly startMs: number; readonly stepMs: number; readonly steps: number };

const dayMs = 86_400_000;

function timeText({ stepMs, steps }: Span, at: number): string {
  return stepMs * steps > 2 * dayMs ? `${shortDay(at)}, ${clockTime(at)}` : clockTime(at);
}

type PlotProps = {
  readonly span: Span;
  readonly values: readonly (number | null)[];
  /** What the values are, such as `verifies a minute`. */
  readonly unit: string;
  /** Bars instead of a line. */
  readonly isCount?: boolean;
};

/** The top of a scale: 1, 2 or 5, and zeros. */
function topOf(most: number): number {
  const size = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5].find((step) => step * size >= most) ?? 10) * size;
}

/** A line over time, with the value under the pointer. Gaps are where nothing was recorded. */
export function Plot({ span, values, unit, isCount = false }: PlotProps) {
  const [shown, setShown] = useState<number | null>(null);
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return <p class="quiet">Nothing was recorded yet.</p>;
  const most = topOf(Math.max(1, ...known));
  const peak = values.findIndex((value) => value === Math.max(...known));
  const index = shown ?? peak;
  const at = timeText(span, span.startMs + index * span.stepMs);
  const x = shown === null ? null : ((shown + 0.5) / values.length) * width;
  return (
    <div class="plot">
      <p class="quiet">
        {shown === null ? 'Peak ' : ''}
        <strong>{count(values[index] ?? 0)}</strong> at {at}
      </p>
      <div class="scaled">
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${unit}: the peak is ${count(Math.max(...known))}, at ${timeText(span, span.startMs + peak * span.stepMs)}`}
          onPointerMove={(event) => setShown(stepUnder(event, values))}
          onPointerLeave={() => setShown(null)}
        >
          {[0, 0.5, 1].map((part) => (
            <line key={part} class="grid-line" x1="0" x2={width} y1={yOf(part, 1)} y2={yOf(part, 1)} />
          ))}
          {isCount ? (
            <path class="bars" d={barsOf(values, most)} />
          ) : (
            <>
              <path class="area" d={areaOf(values, most)} />
              <path class="line" d={lineOf(values, most)} />
            </>
          )}
          {x !== null && <line x1={x} x2={x} y1="0" y2={height} />}
        </svg>
        <div class="scale" aria-hidden="true">
          <span>{count(most)}</span>
          {most > 1 && <span>{count(most / 2)}</span>}
          <span>0</span>
        </div>
        <TimeAxis span={span} />
      </div>
    </div>
  );
}

function stepUnder(event: PointerEvent, values: readonly (number | null)[]): number | null {
  const { left, width: drawn } = (event.currentTarget as Element).getBoundingClientRect();
  const index = Math.floor(((event.clientX - left) / drawn) * values.length);
  return values[index] === null || values[index] === undefined ? null : index;
}

function yOf(value: number, most: number): number {
  return height - 1 - (value / most) * (height - 2);
}

function barsOf(values: readonly (number | null)[], most: number): string {
  const step = width / values.length;
  return values
    .map((value, index) =>
      value === null || value === 0
        ? ''
        : `M${(index * step + step * 0.15).toFixed(1)} ${height}V${yOf(value, most).toFixed(1)}h${(step * 0.7).toFixed(1)}V${height}Z`,
    )
    .join('');
}

/** Ranges of neighbours that are not null, as points of the plot. */
function rangesOf(values: readonly (number | null)[], most: number): string[][] {
  const ranges: string[][] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    const x = ((index + 0.5) / values.length) * width;
    const point = `${x.toFixed(1)} ${yOf(value, most).toFixed(1)}`;
    const before = values[index - 1] ?? null;
    if (before === null) ranges.push([point]);
    else ranges.at(-1)?.push(point);
  });
  return ranges;
}

function lineOf(values: readonly (number | null)[], most: number): string {
  // A single value is drawn as a dot: a line of no length with round ends.
  return rangesOf(values, most)
    .map((points) => `M${points.join('L')}${points.length === 1 ? 'h0' : ''}`)
    .join('');
}

function areaOf(values: readonly (number | null)[], most: number): string {
  return rangesOf(values, most)
    .map((points) => {
      const [first, last] = [points[0], points.at(-1)].map((point) => point?.split(' ')[0] ?? '0');
      return `M${first} ${height}L${points.join('L')}L${last} ${height}Z`;
    })
    .join('');
}

/** Three times under a plot. */
export function TimeAxis({ span }: { span: Span }) {
  const lengthMs = span.stepMs * span.steps;
  const text = lengthMs > 2 * dayMs ? shortDay : clockTime;
  return (
    <div class="axis" aria-hidden="true">
      <span>{text(span.startMs)}</span>
      <span>{text(span.startMs + lengthMs / 2)}</span>
      <span>now</span>
    </div>
  );
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

export function meanOf(values: readonly number[]): number {
  return sumOf(values) / values.length;
}

export function mostOf(values: readonly number[]): number {
  return Math.max(...values);
}

/** Makes one step of each `size` neighbours. */
export function merged(
  values: readonly (number | null)[],
  size: number,
  merge: (values: readonly number[]) => number,
): (number | null)[] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) => {
    const known = values.slice(index * size, (index + 1) * size).filter((value) => value !== null);
    return known.length === 0 ? null : merge(known);
  });
}

export type Part = { readonly label: string; readonly value: number; readonly tone: Tone | 'accent' };

/** Parts of a whole as one bar, with a legend that has the numbers. */
export function ShareBar({ parts, text }: { parts: readonly Part[]; text: string }) {
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  let from = 0;
  return (
    <div class="share">
      <svg viewBox={`0 0 ${width} 12`} preserveAspectRatio="none" role="img" aria-label={text}>
        {whole > 0 &&
          parts.map(({ label, value, tone }) => {
            const start = from;
            from += (value / whole) * width;
            return <rect key={label} x={start} y="0" width={from - start} height="12" data-tone={tone} />;
          })}
      </svg>
      <ul class="legend">
        {parts.map(({ label, value, tone }) => (
          <li key={label} data-tone={tone}>
            {label} <strong>{count(value)}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Neighbouring steps with the same state. */
export type Run<State> = { readonly state: State; readonly from: number; readonly to: number };

export function runsOf<State>(states: readonly (State | null)[]): Run<State>[] {
  const runs: { state: State; from: number; to: number }[] = [];
  states.forEach((state, index) => {
    const last = runs.at(-1);
    if (state === null) return;
    if (last?.state === state && last.to === index) last.to = index + 1;
    else runs.push({ state, from: index, to: index + 1 });
  });
  return runs;
}

/** States over time as one band. A bad state is drawn higher than a good one, so that color is not needed. */
export function Band({ tones, text }: { tones: readonly (Tone | null)[]; text: string }) {
  return (
    <svg
      class="band"
      viewBox={`0 0 ${Math.max(1, tones.length)} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <rect x="0" y="15" width={Math.max(1, tones.length)} height="5" />
      {runsOf(tones).map(({ state, from, to }) => {
        const top = heights[state];
        // One bad minute of a day must be seen as well.
        const wide = Math.max(to - from, tones.length / 300);
        return <rect key={from} x={from} y={20 - top} width={wide} height={top} data-tone={state} />;
      })}
    </svg>
  );
}

const heights: Readonly<Record<Tone, number>> = { ok: 10, warn: 15, fail: 20, quiet: 5 };

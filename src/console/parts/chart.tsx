import type { Tone } from './notice.tsx';

const width = 600;
const height = 60;

/** A line of values over time; gaps are where nothing was recorded. `text` says in words what the line shows. */
export function Sparkline({ values, text }: { values: readonly (number | null)[]; text: string }) {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  const x = (index: number): number => (index / Math.max(1, values.length - 1)) * width;
  const y = (value: number): number => height - 2 - (value / most) * (height - 4);
  const path = values
    .map((value, index) => {
      if (value === null) return '';
      const command = index === 0 || values[index - 1] === null ? 'M' : 'L';
      return `${command}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join('');
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <path d={path} />
    </svg>
  );
}

export type Part = { readonly label: string; readonly value: number; readonly tone: Tone };

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
            {label} <strong>{value.toLocaleString('en')}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** States over time as one band. Neighbours of the same state are drawn as one rectangle. */
export function Band({ tones, text }: { tones: readonly (Tone | null)[]; text: string }) {
  const runs: { tone: Tone; from: number; to: number }[] = [];
  tones.forEach((tone, index) => {
    const last = runs.at(-1);
    if (tone === null) return;
    if (last?.tone === tone && last.to === index) last.to = index + 1;
    else runs.push({ tone, from: index, to: index + 1 });
  });
  return (
    <svg
      class="band"
      viewBox={`0 0 ${Math.max(1, tones.length)} 12`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      {runs.map(({ tone, from, to }) => (
        <rect key={from} x={from} y="0" width={to - from} height="12" data-tone={tone} />
      ))}
    </svg>
  );
}

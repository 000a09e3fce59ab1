import type { ComponentChildren } from 'preact';

export type Tone = 'ok' | 'warn' | 'fail' | 'quiet';

/** A message over the content. Screen readers read failures at once. */
export function Notice({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <div class="notice" data-tone={tone} role={tone === 'fail' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

/** A state in a word. The word says it, not the color alone. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class="badge" data-tone={tone}>
      {children}
    </span>
  );
}

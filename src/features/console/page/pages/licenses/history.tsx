import { useEffect } from 'preact/hooks';
import type { ChangeObject } from '../../../../../wire/license.ts';
import { Who } from '../../daemon.tsx';
import { count, counted, dayText } from '../../format.ts';
import { Notice } from '../../parts/notice.tsx';
import { Section } from '../../parts/page.tsx';
import { ExactTime } from '../../parts/time.tsx';
import { usePages } from '../../use-data.ts';

/** The changes of a license as a timeline, the latest first. */
export function History({ licenseKey, version }: { licenseKey: string; version: string }) {
  const path = `/admin/v1/licenses/${encodeURIComponent(licenseKey)}/history?limit=20`;
  const { items, total, error, more, reload } = usePages<ChangeObject>(path, 'changes');
  useEffect(() => {
    if (items !== null) reload();
  }, [version]);
  return (
    <Section title="History">
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {items?.length === 0 && (
        <p class="quiet">No change is recorded. History is kept as long as the setting history.keep says.</p>
      )}
      {items !== null && items.length > 0 && (
        <ol class="timeline">
          {items.map((change, index) => (
            <li key={`${change.at} ${items.length - index}`} data-change={change.change}>
              <p>
                <strong>{changes[change.change] ?? change.change}</strong>
                {effectOf(change)}
              </p>
              <p class="quiet">
                <ExactTime at={change.at} /> by <Who is={change.credential} />
              </p>
            </li>
          ))}
        </ol>
      )}
      {more !== null && (
        <p>
          <span class="quiet">
            {count(items?.length ?? 0)} of {count(total ?? 0)}
          </span>{' '}
          <button type="button" onClick={more}>
            Show earlier changes
          </button>
        </p>
      )}
    </Section>
  );
}

const changes: Readonly<Record<string, string>> = {
  usage: 'Used',
  decrease: 'Use undone',
  disable: 'Disabled',
  enable: 'Enabled',
  refund: 'Refunded',
  renew: 'Renewed',
  update: 'Terms changed',
  rekey: 'Key replaced',
  transfer: 'Given to another customer',
  set_uses: 'Uses set',
};

/** Changes whose effect is neither a count nor a state. */
const others: ReadonlySet<string> = new Set(['renew', 'update', 'rekey', 'transfer']);

/** What differs before and after. */
function effectOf({ change, before, after }: ChangeObject): string {
  if (before.uses !== after.uses) return `: ${count(before.uses)} → ${counted(after.uses, 'use')}`;
  const { expires_at: end } = after;
  if (end !== undefined && end !== before.expires_at)
    return end === null ? ': valid for ever' : `: until ${dayText(end)}`;
  return before.enabled === after.enabled && !others.has(change) ? ' (changed nothing)' : '';
}

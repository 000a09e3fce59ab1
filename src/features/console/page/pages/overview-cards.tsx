import type { OverviewObject } from '../../wire/console.ts';
import { count, counted } from '../format.ts';
import { ShareBar, type Part } from '../parts/chart.tsx';
import { Badge } from '../parts/notice.tsx';
import { Card, Fields } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';

export function Licenses({ overview: { role, records, preload } }: { overview: OverviewObject }) {
  if (role === 'holder' || records === null) return null;
  const parts = partsOf(role, records);
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  return (
    <Card title="Licenses" side={<a href={hrefTo(['licenses'])}>Search</a>}>
      <p>
        <span class="figure">{count(whole)}</span>{' '}
        <span class="quiet">{role === 'agent' ? 'known here' : 'sold here'}</span>
      </p>
      <ShareBar
        parts={parts.filter(({ value }) => value > 0)}
        text={parts.map(({ label, value }) => `${label} ${count(value)}`).join(', ')}
      />
      {preload !== null && preload.left > 0 && (
        <p class="quiet">
          {counted(preload.left, 'license key')} to fetch in advance; {count(preload.done)} fetched.
        </p>
      )}
    </Card>
  );
}

function partsOf(role: 'agent' | 'authority', records: NonNullable<OverviewObject['records']>): Part[] {
  const { fresh, stale, grace, expired, disabled } = records;
  const off = { label: 'disabled', value: disabled, tone: 'quiet' } as const;
  if (role === 'authority')
    return [{ label: 'enabled', value: fresh + stale + grace + expired, tone: 'ok' }, off];
  return [
    { label: 'fresh', value: fresh, tone: 'ok' },
    { label: 'stale', value: stale, tone: 'accent' },
    { label: 'in grace', value: grace, tone: 'warn' },
    { label: 'expired', value: expired, tone: 'fail' },
    off,
  ];
}

export function Issuer({ issuer }: { issuer: NonNullable<OverviewObject['issuer']> }) {
  const { activations, seats_taken: seats, waiting } = issuer;
  return (
    <Card title="Leases">
      <Fields
        entries={{
          Devices: activations !== null && count(activations),
          'Seats taken': seats !== null && count(seats),
          'Requests that wait': waiting > 0 && count(waiting),
          'Signing key ends': <Time at={issuer.not_after} />,
          'Key statement': `version ${issuer.version}`,
          Issuer: <code>{issuer.issuer}</code>,
        }}
      />
    </Card>
  );
}

const storageTexts: Readonly<Record<OverviewObject['storage'], string>> = {
  ok: 'ok',
  full: 'full: changes are refused',
  damaged: 'damaged: nothing is changed or sent',
  read_only: 'read-only: changes are refused',
  unavailable: 'the database cannot be reached',
  slow: 'the database does not answer in time',
  refused: 'this process cannot use the database',
};

export function Daemon({ overview }: { overview: OverviewObject }) {
  const { storage, totals, certificate_ends_at: certificate } = overview;
  return (
    <Card title="This daemon" side={<a href={hrefTo(['doctor'])}>Doctor</a>}>
      <Fields
        entries={{
          Started: <Time at={overview.started_at} />,
          Storage: <Badge tone={storage === 'ok' ? 'ok' : 'fail'}>{storageTexts[storage]}</Badge>,
          'Since the start': (
            <>
              <span>{counted(totals.verifies, 'verify', 'verifies')},</span>{' '}
              <span>{counted(totals.uses, 'use')}</span>
            </>
          ),
          'Certificate ends': certificate !== null && <Time at={certificate} />,
          Instance: <code>{overview.instance}</code>,
        }}
      />
    </Card>
  );
}

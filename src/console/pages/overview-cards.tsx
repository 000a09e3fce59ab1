import type { OverviewObject } from '../../wire/console.ts';
import type { HeldLeaseObject } from '../../wire/holder/held-lease.ts';
import type { LeasesObject } from '../../wire/status.ts';
import { count, counted, shownKey } from '../format.ts';
import { ShareBar, type Part } from '../parts/chart.tsx';
import { Badge, Notice, type Tone } from '../parts/notice.tsx';
import { Card, Fields } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { useData } from '../use-data.ts';

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

const leaseTones: Readonly<Record<HeldLeaseObject['state'], Tone>> = {
  active: 'ok',
  waiting: 'warn',
  none: 'fail',
  disabled: 'fail',
  expired: 'fail',
  ended: 'quiet',
  replaced: 'fail',
  blocked: 'fail',
};

/** The leases of this device. */
export function Leases({ leases }: { leases: LeasesObject }) {
  const { issuer, last_success_at: success, last_error: error, last_error_at: errorAt } = leases;
  return (
    <Card title="Leases of this device">
      <HeldLeases />
      <Fields
        entries={{
          Issuer: issuer,
          'Last answer': success === null ? 'none yet' : <Time at={success} />,
          Error: error !== null && errorAt !== null && (
            <>
              {error}, <Time at={errorAt} />
            </>
          ),
          'First lease ends': leases.next_end !== null && <Time at={leases.next_end} />,
          'Uses to report': leases.pending_uses > 0 && count(leases.pending_uses),
          Device: <code>{leases.device}</code>,
        }}
      />
    </Card>
  );
}

function HeldLeases() {
  const { data, error } = useData<{ activations: HeldLeaseObject[] }>('/agent/v1/activations', 10_000);
  if (error !== null && data === null) return <Notice tone="fail">{error.message}</Notice>;
  if (data === null) return null;
  if (data.activations.length === 0)
    return (
      <p class="quiet">
        This device has no lease. Your software gets one by <code>latchkey activate LICENSE_KEY</code>.
      </p>
    );
  return (
    <ul class="list">
      {data.activations.map((held) => (
        <li key={`${held.product_key} ${held.license_key}`}>
          <Badge tone={leaseTones[held.state]}>{held.state}</Badge> <code>{shownKey(held.license_key)}</code>{' '}
          <span class="quiet">
            {held.product_key}
            {held.expires_at !== null && (
              <>
                , ends <Time at={held.expires_at} />
              </>
            )}
          </span>
          {held.last_error !== null && <p class="quiet">{held.last_error}</p>}
        </li>
      ))}
    </ul>
  );
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
          Issuer: issuer.issuer,
          'Key statement': `version ${issuer.version}`,
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
          Role: overview.role,
          Version: overview.version,
          Started: <Time at={overview.started_at} />,
          'Since the start': `${counted(totals.verifies, 'verify', 'verifies')}, ${counted(totals.uses, 'use')}`,
          Storage: <Badge tone={storage === 'ok' ? 'ok' : 'fail'}>{storageTexts[storage]}</Badge>,
          'Certificate ends': certificate !== null && <Time at={certificate} />,
          Instance: <code>{overview.instance}</code>,
        }}
      />
    </Card>
  );
}

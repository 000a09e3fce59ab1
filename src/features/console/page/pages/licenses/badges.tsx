import type { LicenseDetail, LicenseObject } from '../../../../../wire/license.ts';
import { shownKey } from '../../format.ts';
import { Badge, type Tone } from '../../parts/notice.tsx';
import { hrefTo } from '../../router.ts';

type State = LicenseDetail['state'];

const stateTones: Readonly<Record<State, Tone>> = {
  enabled: 'ok',
  disabled: 'warn',
  refunded: 'quiet',
  ended: 'warn',
  expired: 'fail',
  gone: 'fail',
};

/** Whether a license has ended and is still answered as valid. */
export function isInGrace({ status }: LicenseObject, state: State): boolean {
  return status === 'grace' && state === 'enabled';
}

export function StateBadge({ license, state }: { license: LicenseObject; state: State }) {
  if (isInGrace(license, state)) return <Badge tone="warn">in grace</Badge>;
  return <Badge tone={stateTones[state]}>{state}</Badge>;
}

type Freshness = NonNullable<LicenseDetail['freshness']>['state'];

const freshnessTones: Readonly<Record<Freshness, Tone>> = {
  fresh: 'ok',
  stale: 'quiet',
  grace: 'warn',
  expired: 'fail',
};

export function FreshnessBadge({ freshness }: { freshness: Freshness }) {
  return <Badge tone={freshnessTones[freshness]}>{freshness}</Badge>;
}

/** A license key, which leads to its page. */
export function LicenseLink({ to: licenseKey }: { to: string }) {
  return (
    <a class="key" href={hrefTo(['licenses', licenseKey])}>
      {shownKey(licenseKey)}
    </a>
  );
}

import { useDaemon } from '../../daemon.tsx';
import type { LicenseDetail } from '../../../../../wire/license.ts';
import { count, counted, isMasked, shownKey } from '../../format.ts';
import { Copy, quoted, SameCommand } from '../../parts/command.tsx';
import { Id } from '../../parts/id.tsx';
import { Notice } from '../../parts/notice.tsx';
import { Card, Fields, Heading, Section } from '../../parts/page.tsx';
import { ExactTime, Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { changeText, StateBadge as ChangeState } from '../outbox-change.tsx';
import { FreshnessBadge, isInGrace, StateBadge } from './badges.tsx';
import { CustomerActions } from './customer-actions.tsx';
import { commandKey, LicenseActions } from './license-actions.tsx';
import { History } from './history.tsx';
import { Seats } from './seats.tsx';
import { TermActions } from './terms.tsx';

const readEveryMs = 5_000;

/** The page of one license. */
export function License({ licenseKey }: { licenseKey: string }) {
  const isAuthority = useDaemon().role === 'authority';
  const path = `/admin/v1/licenses/${encodeURIComponent(licenseKey)}`;
  const { data, error, reload } = useData<LicenseDetail>(path, readEveryMs);
  const shown = shownKey(licenseKey);
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefTo(['licenses'])}>Licenses</a>
      </nav>
      <Heading title={shown} isCode>
        {data !== null && !isMasked(data.license.license_key) && (
          <Copy text={data.license.license_key} label="Copy the key" />
        )}
        {data !== null && <LicenseActions detail={data} onDone={reload} />}
        {isAuthority && data?.replaced_by === null && (
          <>
            <TermActions detail={data} onDone={reload} />
            <CustomerActions detail={data} onDone={reload} />
          </>
        )}
      </Heading>
      {error !== null && (
        <Notice tone="fail">{error.status === 404 ? unknownHere(isAuthority) : error.message}</Notice>
      )}
      {data !== null && <Details detail={data} licenseKey={licenseKey} onDone={reload} />}
      <SameCommand line={`latchkey license show ${quoted(commandKey(licenseKey))}`} />
    </>
  );
}

function unknownHere(isAuthority: boolean): string {
  return isAuthority
    ? 'No license with this key was sold here.'
    : 'This machine does not know a license with this key. It asks the upstream when your software asks for the key.';
}

function Details({
  detail,
  licenseKey,
  onDone,
}: {
  detail: LicenseDetail;
  licenseKey: string;
  onDone: () => void;
}) {
  // What has changed since the page was opened shows in these parts, too.
  const { license, state, seats_taken: taken, activations } = detail;
  const version = JSON.stringify([license, state, taken, activations]);
  return (
    <>
      <div class="license-cards">
        <LicenseCard detail={detail} />
        {detail.freshness !== null && <FreshnessCard detail={detail} freshness={detail.freshness} />}
        <BuyerCard detail={detail} />
      </div>
      {detail.operations_total > 0 && <Waiting detail={detail} />}
      <Seats detail={detail} licenseKey={licenseKey} version={version} onDone={onDone} />
      <History licenseKey={licenseKey} version={version} />
    </>
  );
}

const answers: Readonly<Record<LicenseDetail['state'], string>> = {
  enabled: 'Your software gets the answer: valid.',
  disabled: 'Your software gets the answer: disabled.',
  refunded: 'The purchase was refunded, and the key is disabled.',
  ended: 'The license has ended, so your software gets the answer: not valid.',
  expired: 'The upstream confirmed the key too long ago, so it is not answered as valid.',
  gone: 'The upstream no longer knows the key, so your software gets the answer: unknown.',
};

function LicenseCard({ detail }: { detail: LicenseDetail }) {
  const { license, state, replaced_by: replacement } = detail;
  return (
    <Card title="License" side={<StateBadge license={license} state={state} />}>
      <p>
        {isInGrace(license, state)
          ? 'The license has ended. In its grace, your software gets the answer: valid.'
          : answers[state]}
      </p>
      {replacement !== null && (
        <p>
          The key was replaced by <a href={hrefTo(['licenses', replacement])}>{shownKey(replacement)}</a>.
        </p>
      )}
      <p class="figure">
        {counted(license.uses, 'use')}
        {license.uses_limit !== undefined && ` of ${count(license.uses_limit)}`}
      </p>
      {license.expires_at !== undefined && (
        <Fields
          entries={{
            'Valid until': license.expires_at === null ? 'for ever' : <ExactTime at={license.expires_at} />,
            'Answered as valid until': license.enabled && license.grace_until !== undefined && (
              <ExactTime at={license.grace_until} />
            ),
            Entitlements: license.entitlements !== undefined && license.entitlements.join(', '),
            'Seats of its own': license.seats,
            Metadata: license.metadata !== undefined && <code>{JSON.stringify(license.metadata)}</code>,
          }}
        />
      )}
    </Card>
  );
}

function FreshnessCard({
  detail: { license },
  freshness,
}: {
  detail: LicenseDetail;
  freshness: NonNullable<LicenseDetail['freshness']>;
}) {
  const { confirmed } = freshness;
  const isSame = confirmed.uses === license.uses && confirmed.enabled === license.enabled;
  return (
    <Card title="Freshness" side={<FreshnessBadge freshness={freshness.state} />}>
      <Fields
        entries={{
          'Confirmed by the upstream': <Time at={freshness.confirmed_at} />,
          'Answered without it until': <Time at={freshness.grace_until} />,
          'The upstream said':
            !isSame && `${counted(confirmed.uses, 'use')}, ${confirmed.enabled ? 'enabled' : 'disabled'}`,
        }}
      />
    </Card>
  );
}

function BuyerCard({ detail }: { detail: LicenseDetail }) {
  const { role } = useDaemon();
  const { license, product, purchase } = detail;
  const name = product.name ?? product.product_key;
  const refundedAt = purchase?.refunded_at ?? null;
  const forgottenOrUnknown = role === 'authority' ? 'forgotten' : 'not known here';
  return (
    <Card title="Sale">
      <Fields
        entries={{
          Customer:
            license.buyer_email === '' ? (
              forgottenOrUnknown
            ) : (
              <a href={hrefTo(['licenses'], { search: license.buyer_email })}>{license.buyer_email}</a>
            ),
          Product:
            role === 'authority' ? <a href={hrefTo(['products', product.product_key])}>{name}</a> : name,
          Sold: <ExactTime at={license.date} />,
          Refunded: refundedAt !== null && <ExactTime at={refundedAt} />,
          Purchase: purchase !== null && <Id of={purchase.purchase_id} />,
        }}
      />
    </Card>
  );
}

/** Changes of the license that have not reached the upstream. */
function Waiting({ detail: { operations, operations_total: total, license } }: { detail: LicenseDetail }) {
  return (
    <Section title={`${counted(total, 'change has', 'changes have')} not reached the upstream`}>
      <ul class="list">
        {operations.map((operation) => (
          <li key={operation.id}>
            <p>
              <ChangeState operation={operation} />{' '}
              <a href={hrefTo(['outbox', operation.id])}>{changeText(operation)}</a>, recorded{' '}
              <Time at={operation.created_at} />
            </p>
            <p class="quiet">{operation.explanation.meaning}</p>
          </li>
        ))}
      </ul>
      {total > operations.length && (
        <p>
          <a href={hrefTo(['outbox'], { key: license.license_key })}>
            All {count(total)} changes in the outbox
          </a>
        </p>
      )}
    </Section>
  );
}

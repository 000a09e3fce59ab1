import type { LicenseObject, LicenseDetail } from '../../../../../wire/license.ts';
import { send } from '../../api.ts';
import { useDaemon } from '../../daemon.tsx';
import { counted, isMasked, shownKey } from '../../format.ts';
import { Action, type ActionProps } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';

/** The license key in a command. A read-only session does not know the whole key. */
export function commandKey(licenseKey: string): string {
  return isMasked(licenseKey) ? 'LICENSE_KEY' : licenseKey;
}

type Change = 'usage' | 'decrease' | 'enable' | 'disable';

function change(which: Change, licenseKey: string): Promise<void> {
  return send<void>('PUT', `/api/v2/license/${which}`, { license_key: licenseKey });
}

/** What a person can do with a license. */
export function LicenseActions({ detail, onDone }: { detail: LicenseDetail; onDone: () => void }) {
  const { role } = useDaemon();
  const { license, state, purchase } = detail;
  const key = license.license_key;
  const command = quoted(commandKey(key));
  // A key that was replaced is never valid again.
  if (detail.replaced_by !== null) return null;
  const later = role === 'agent' ? ' The change is sent to the upstream.' : '';
  return (
    <>
      <Action
        label="Record a use"
        title={`Record a use of ${shownKey(key)}?`}
        consequence={`The license then has ${counted(license.uses + 1, 'use')} instead of ${license.uses}. A use can be undone.${later}`}
        command={`latchkey use ${command}`}
        run={() => change('usage', key)}
        onDone={onDone}
      />
      {license.uses > 0 && (
        <Action
          label="Undo a use"
          title={`Undo a use of ${shownKey(key)}?`}
          consequence={`The license then has ${counted(license.uses - 1, 'use')} instead of ${license.uses}.${later}`}
          command={`latchkey unuse ${command}`}
          run={() => change('decrease', key)}
          onDone={onDone}
        />
      )}
      {state !== 'refunded' && <Switch detail={detail} later={later} command={command} onDone={onDone} />}
      {role === 'authority' && purchase !== null && purchase.refunded_at === null && (
        <Action {...refund(purchase.purchase_id, license)} onDone={onDone} />
      )}
    </>
  );
}

function Switch({
  detail: { license, seats_taken: seats },
  later,
  command,
  onDone,
}: {
  detail: LicenseDetail;
  later: string;
  command: string;
  onDone: () => void;
}) {
  const key = license.license_key;
  if (license.enabled) {
    const devices =
      seats === 0
        ? ''
        : ` ${counted(seats, 'device loses its', 'devices lose their')} lease at the next renewal.`;
    return (
      <Action
        label="Disable"
        title={`Disable ${shownKey(key)}?`}
        consequence={`Your software gets the answer “disabled” for this key from now on.${devices} You can enable the key again.${later}`}
        command={`latchkey disable ${command}`}
        isDangerous
        run={() => change('disable', key)}
        onDone={onDone}
      />
    );
  }
  return (
    <Action
      label="Enable"
      title={`Enable ${shownKey(key)}?`}
      consequence={`The key is valid again for everybody who has it.${later}`}
      command={`latchkey enable ${command}`}
      run={() => change('enable', key)}
      onDone={onDone}
    />
  );
}

/** Refunds a purchase. */
export function refund(
  purchaseId: string,
  { license_key: key, buyer_email: customer }: LicenseObject,
): ActionProps {
  return {
    label: 'Refund',
    title: `Refund the purchase of ${customer}?`,
    consequence: (
      <>
        The key <code>{shownKey(key)}</code> is disabled, and the purchase counts as refunded; the latter
        cannot be undone. No money is moved: refund the payment with your payment provider.
      </>
    ),
    command: `latchkey purchase refund ${quoted(purchaseId)}`,
    isDangerous: true,
    run: () => send('POST', `/admin/v1/purchases/${encodeURIComponent(purchaseId)}/refund`, {}),
  };
}

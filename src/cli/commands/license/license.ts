import { provenanceHeaderNames } from '../../../domain/header-names.ts';
import type { DaemonResponse, Call } from '../../client/call.ts';
import { answeredAt, request, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import type { Output } from '../../output.ts';
import { describeUnconfirmed } from './unconfirmed.ts';
import { type LicenseObject, licenseObject } from '../../../wire/license.ts';

/** Where an authority lists licenses. */
export const licensesPath = '/admin/v1/licenses';

/** Shows a license: whether it is valid, its buyer, and how fresh an agent's answer is. */
export const licenseView: View<LicenseObject> = {
  schema: licenseObject,
  show(shown, { headers }) {
    const header = (name: string): string | undefined => headers[name.toLowerCase()]?.toString();
    return formatFields({
      ...licenseFields(shown),
      freshness: header(provenanceHeaderNames.freshness),
      confirmed: instant(header(provenanceHeaderNames.confirmedAt)),
      'grace until': instant(header(provenanceHeaderNames.graceUntil)),
      pending: header(provenanceHeaderNames.pending),
    });
  },
};

/** The fields of a license. The first one says whether the key is valid. */
export function licenseFields(shown: LicenseObject): Readonly<Record<string, Cell>> {
  return {
    [shown.enabled ? 'valid' : 'disabled']: whole(shown.license_key),
    uses: shown.uses,
    product: shown.product_link,
    buyer: shown.buyer_email,
    created: instant(shown.date),
  };
}

/** The request that changes a license (specification 4.4). */
export function changeLicense(endpoint: 'usage' | 'decrease' | 'enable' | 'disable', key: string): Call {
  return { method: 'PUT', path: `/api/v2/license/${endpoint}`, form: { license_key: key } };
}

/** Sends a request about a license, and shows the license and its unconfirmed changes. */
export async function requestAndShowLicense(
  options: GlobalOptions,
  output: Output,
  call: Call,
  toExitCode: (license: LicenseObject) => number = () => exitCode.done,
): Promise<number> {
  const result = await request(options, call, licenseObject);
  if (!result.ok) return result.report(output);
  const { data, raw, answer } = result;
  if (options.json) output.printJson(raw);
  else {
    const fields = licenseView.show(data, answer, hintFor(options));
    const lines = countPending(answer) > 0 ? await describeUnconfirmed(options, data.license_key) : [];
    await output.show([fields, ...(lines.length > 0 ? [lines.join('\n')] : [])].flat(), answeredAt(answer));
  }
  return toExitCode(data);
}

function countPending({ headers }: DaemonResponse): number {
  return Number(headers[provenanceHeaderNames.pending.toLowerCase()] ?? 0);
}

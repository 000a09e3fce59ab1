import { provenanceHeaderNames } from '../../domain/header-names.ts';
import type { DaemonResponse, Call } from '../client/call.ts';
import { answeredAt, dataOrNull, request, type View } from '../client/request.ts';
import type { GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import { hintFor } from '../hint.ts';
import type { Hint } from '../../domain/finding.ts';
import type { Output } from '../output.ts';
import { type LicenseObject, licenseObject } from '../../wire/license.ts';
import { counted } from '../../domain/text.ts';
import { stateWord, termFields } from './license-terms.ts';
import { needsDecision, outboxPath } from './outbox.ts';
import { type OperationObject, operationList } from '../../wire/operation.ts';

export const licensesPath = '/admin/v1/licenses';

/** Shows a license: whether it is valid, its buyer, and how fresh an agent's answer is. */
export const licenseView: View<LicenseObject> = {
  schema: licenseObject,
  show(license, { headers }) {
    const header = (name: string): string | undefined => headers[name.toLowerCase()]?.toString();
    return formatFields({
      ...licenseFields(license),
      freshness: header(provenanceHeaderNames.freshness),
      confirmed: instant(header(provenanceHeaderNames.confirmedAt)),
      'grace until': instant(header(provenanceHeaderNames.graceUntil)),
      pending: header(provenanceHeaderNames.pending),
    });
  },
};

/** The fields of a license. The first one says whether the key is valid. */
export function licenseFields(license: LicenseObject): Readonly<Record<string, Cell>> {
  return {
    [stateWord(license)]: whole(license.license_key),
    ...termFields(license),
    uses: license.uses_limit === undefined ? license.uses : `${license.uses} of ${license.uses_limit}`,
    product: license.product_link,
    buyer: license.buyer_email,
    created: instant(license.date),
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
  const { data, raw, answer } = await request(options, call, licenseObject);
  const fields = licenseView.show(data, answer, hintFor(options));
  const isListed = options.json !== true && countPending(answer) > 0;
  const lines = isListed ? await describeUnconfirmed(options, data.license_key) : [];
  const shown = [fields, ...(lines.length > 0 ? [lines.join('\n')] : [])].flat();
  await output.result(raw, shown, answeredAt(answer));
  return toExitCode(data);
}

function countPending({ headers }: DaemonResponse): number {
  return Number(headers[provenanceHeaderNames.pending.toLowerCase()] ?? 0);
}

const maxNamed = 3;

/** Describes the changes of a license key that the store has not confirmed. Empty if the daemon does not list them. */
async function describeUnconfirmed(options: GlobalOptions, licenseKey: string): Promise<readonly string[]> {
  const call = { path: outboxPath, query: { license_key: licenseKey, limit: 100 } };
  const list = await dataOrNull(options, call, operationList);
  return formatUnconfirmed(list?.operations ?? [], hintFor(options));
}

/** Changes that wait for a decision come first. */
export function formatUnconfirmed(operations: readonly OperationObject[], hint: Hint): readonly string[] {
  const undecided = operations.filter(needsDecision);
  const waiting = operations.filter((each) => !needsDecision(each));
  const has = (kind: string): boolean => waiting.some((each) => each.kind === kind);
  const counts = waiting.filter(({ kind }) => kind === 'usage' || kind === 'decrease').length;
  const more = undecided.length - maxNamed;
  return [
    ...undecided.slice(0, maxNamed).map((each) => formatUndecided(each, hint)),
    ...(more > 0
      ? [
          `${counted(more, 'more change waits', 'more changes wait')} for your decision: ${hint('outbox list')}`,
        ]
      : []),
    ...(has('enable')
      ? [
          'The enable is recorded and waits for the store. The key does not change here until the store agrees.',
        ]
      : []),
    ...(has('disable')
      ? ['The key is disabled here already. The change is sent to the store as soon as possible.']
      : []),
    ...(counts > 0 ? [`Recorded here, not confirmed by the store yet: ${formatCount(counts)}.`] : []),
  ];
}

function formatUndecided({ id, kind, held }: OperationObject, hint: Hint): string {
  const state = held ? 'may have been applied' : 'was not applied';
  return `A change (${kind}) ${state} and waits for your decision: ${hint(`outbox show ${id}`)}`;
}

function formatCount(count: number): string {
  return count < 100
    ? counted(count, 'change of the count', 'changes of the count')
    : 'at least 100 changes of the count';
}

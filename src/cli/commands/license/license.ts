import { provenanceHeaderNames } from '../../../domain/header-names.ts';
import type { DaemonResponse, Call } from '../../client/call.ts';
import { answeredAt, request, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import { hintFor, type Hint } from '../../hint.ts';
import type { Output } from '../../output.ts';
import { type LicenseObject, licenseObject } from '../../../wire/license.ts';
import { counted } from '../../../domain/text.ts';
import { outboxPath } from '../outbox/operation.ts';
import { type OperationObject, operationList } from '../../../wire/operation.ts';

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

const maxNamed = 3;

/** Describes the changes of a license key that the store has not confirmed. Empty if the daemon does not list them. */
async function describeUnconfirmed(options: GlobalOptions, licenseKey: string): Promise<readonly string[]> {
  const call = { path: outboxPath, query: { license_key: licenseKey, limit: 100 } };
  const result = await request(options, call, operationList);
  return result.ok ? formatUnconfirmed(result.data.operations, hintFor(options)) : [];
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

function needsDecision({ state, held }: OperationObject): boolean {
  return held || state === 'dead' || state === 'conflicted';
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

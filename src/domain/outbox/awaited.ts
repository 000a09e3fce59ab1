import type { Operation } from './operation.ts';
import { isProblemCode, problems } from '../problem/problem-table.ts';
import { failWith, type Result } from '../problem/problem.ts';

/*
 * Some changes of coupons wait for the word of an upstream that is a Latchkey before their caller is answered. The payload
 * of the operation says so: a refusal then goes to the caller and undoes the change. If the process ends meanwhile, the
 * caller was not answered, so the same holds.
 */

export type Refusal = { code: string; reasons?: readonly string[] };

type AwaitedPayload = { isAwaited?: true; refusal?: Refusal };

function payloadOf({ payload }: Pick<Operation, 'payload'>): AwaitedPayload & Record<string, unknown> {
  return JSON.parse(payload ?? '{}') as AwaitedPayload & Record<string, unknown>;
}

/** Whether the caller has not been answered. */
export function isAwaited(operation: Pick<Operation, 'payload'>): boolean {
  return payloadOf(operation).isAwaited === true;
}

/** The caller is answered without the word of the upstream. */
export function endAwait<Given extends Pick<Operation, 'payload'>>(operation: Given): Given {
  const { isAwaited: _, ...payload } = payloadOf(operation);
  return { ...operation, payload: JSON.stringify(payload) };
}

/** Keeps the upstream's refusal for the caller. */
export function withRefusal<Given extends Pick<Operation, 'payload'>>(
  operation: Given,
  refusal: Refusal,
): Given {
  return { ...operation, payload: JSON.stringify({ ...payloadOf(operation), refusal }) };
}

/** The upstream's refusal; null: it has not refused. */
export function refusalOf(operation: Pick<Operation, 'payload'>): Refusal | null {
  return payloadOf(operation).refusal ?? null;
}

/** The refusal as the upstream would have answered it. */
export function refuseAsUpstream({ code, reasons }: Refusal): Result<never> {
  const detail = `The upstream refused it: ${(reasons ?? [code]).join(', ')}.`;
  // A newer upstream may have other codes.
  if (!isProblemCode(code)) return failWith('upstream_refused', detail);
  return failWith(code, detail, reasons === undefined ? {} : { reasons });
}

/** The refusal, passed on as one of the upstream. */
export function passRefusalOn({ code }: Refusal): Result<never> {
  if (!isProblemCode(code)) return failWith('upstream_refused', `The upstream refused it: ${code}.`);
  const { status, title } = problems[code];
  const detail =
    code === 'coupon_code_taken' ? 'The account already has a coupon with this code.' : `${title} (${code}).`;
  return failWith('upstream_refused', detail, { status });
}

import type { Problem } from '../../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../domain/problem/problem-table.ts';
import { apiKeyHeaders } from '../../domain/header-names.ts';
import { upstreamProductName } from '../../domain/license.ts';
import type { Dialect } from '../../http/dialects.ts';
import { namedLicenseObject, serializeNamedLicense } from '../../wire/license.ts';
import { refusalObject, serializeRefusal } from '../../wire/response.ts';

/** The form of the store Payhip, for software that was written for it. */
export const sent: Dialect = {
  apiKeyHeaders: [apiKeyHeaders.payhip],
  hasFirstVersion: true,
  license: {
    isBodyInQuery: true,
    schema: namedLicenseObject,
    present({ license, productKey }, productName) {
      const name = upstreamProductName(license) ?? productName(productKey);
      if (name instanceof Promise) return name.then((known) => serializeNamedLicense(license, known));
      return serializeNamedLicense(license, name);
    },
  },
  refusal: {
    schema: refusalObject,
    mediaType: 'application/json',
    exception:
      'Under `/api`, an error is only a `message`, as another store sends it, unless `Accept` asks for `application/problem+json`.',
    present: (problem) => ({ status: statusOf(problem), body: serializeRefusal(messageOf(problem)) }),
  },
};

/** Problems with another status than in the table of problems. */
const statuses: Partial<Record<ProblemCode, number>> = {
  license_not_found: 400,
  coupon_code_not_found: 400,
  coupon_code_taken: 400,
  parameters_invalid: 400,
  product_is_recurring: 400,
};

/** An upstream's refusal of a coupon: its parameters, or its code. */
const isBadRequest = new Set([409, 422]);

function statusOf({ code, status }: Problem): number {
  if (status !== undefined) return isBadRequest.has(status) ? 400 : status;
  return statuses[code] ?? problems[code].status;
}

/** Clients look for two of these words. */
const taken = 'A coupon with this code already exists.';

function messageOf({ code, status, detail, errors }: Problem): string {
  if (errors !== undefined) return errors.map((fault) => fault.detail).join(' ');
  if (code === 'coupon_code_taken') return taken;
  const isTaken = code === 'upstream_refused' && status === 409;
  return isTaken && detail !== taken ? `${taken} ${detail}` : detail;
}

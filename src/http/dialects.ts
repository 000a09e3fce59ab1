import type { z } from 'zod';
import type { Problem } from '../domain/problem/problem.ts';
import type { LicenseResponse } from '../service/services.ts';
import type { Awaitable } from '../service/tables.ts';
import { problems, type ProblemCode } from '../domain/problem/problem-table.ts';
import {
  licenseObject,
  serializeLicense,
  namedLicenseObject,
  serializeNamedLicense,
} from '../wire/license.ts';
import { serializeProblem, problemObject, serializeRefusal, refusalObject } from '../wire/response.ts';
import { apiKeyHeaders, type DialectName } from '../domain/header-names.ts';
import { upstreamProductName } from '../domain/license.ts';

/** The form of responses under `/api`, which differs between stores (src/http/README.md, Dialects). */
export type Dialect = {
  /** Further names of the header that carries an API key, in lower case. */
  readonly apiKeyHeaders: readonly string[];
  /** Whether the routes of the first version exist (`/api/v1`). */
  readonly hasFirstVersion: boolean;
  readonly license: LicenseForm;
  readonly refusal: RefusalForm;
};

/** The display name of a product; null if it is not known. */
export type ProductName = (productKey: string) => Awaitable<string | null>;

/** The form of license requests and responses. */
export type LicenseForm = {
  /** Whether a change may have its parameters in the query. */
  readonly isBodyInQuery: boolean;
  /** The schema of the result of `present`. */
  readonly schema: z.ZodType;
  present(answer: LicenseResponse, productName: ProductName): Awaitable<object>;
};

/** The form of a refusal. */
export type RefusalForm = {
  /** The schema of the body. */
  readonly schema: z.ZodType;
  readonly mediaType: string;
  /** A sentence of the OpenAPI description about refusals without a `code`; null: all refusals have a `code`. */
  readonly exception: string | null;
  present(problem: Problem, requestId: string): { status: number; body: object };
};

/** The form of the specification, with problems (RFC 9457) where the specification is silent. */
export const specification: Dialect = {
  apiKeyHeaders: [],
  hasFirstVersion: false,
  license: {
    isBodyInQuery: false,
    schema: licenseObject,
    present: ({ license }) => serializeLicense(license),
  },
  refusal: {
    schema: problemObject,
    mediaType: 'application/problem+json',
    exception: null,
    present: (problem, requestId) => ({
      status: problem.status ?? problems[problem.code].status,
      body: serializeProblem(problem, requestId),
    }),
  },
};

/** The form of the store Payhip, for software that was written for it. */
const payhip: Dialect = {
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

/** All dialects by their names in the configuration (`listen.dialect`). */
export const dialects: Readonly<Record<DialectName, Dialect>> = { specification, payhip };

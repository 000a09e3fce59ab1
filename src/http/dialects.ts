import type { z } from 'zod';
import type { Problem } from '../domain/problem/problem.ts';
import type { LicenseResponse } from '../service/services.ts';
import type { Awaitable } from '../service/tables.ts';
import { problems } from '../domain/problem/problem-table.ts';
import { licenseObject, serializeLicense } from '../wire/license.ts';
import { serializeProblem, problemObject } from '../wire/response.ts';

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
  /** Whether a refusal is not sent, and the connection closed (`listen.unknown`); absent: 429 and 5xx. */
  isHidden?(problem: Problem): boolean;
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

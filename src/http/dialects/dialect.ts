import type { z } from 'zod';
import type { Problem } from '../../domain/problem/problem.ts';
import type { LicenseResponse } from '../../service/services.ts';
import type { Awaitable } from '../../service/tables.ts';

/**
 * How callers of `/api` are spoken to, which differs from one store's interface to another's (src/http/README.md,
 * Dialects). One is chosen at the start; no route and no use case asks which.
 */
export type Dialect = {
  /** Further names of the header that carries an API key, in lower case. */
  readonly apiKeyHeaders: readonly string[];
  /** Whether the first version of the interface is answered too (`/api/v1`). */
  readonly hasFirstVersion: boolean;
  readonly license: LicenseForm;
  readonly refusal: RefusalForm;
};

/** Tells what people call a product; null when that is not known here. */
export type ProductName = (productKey: string) => Awaitable<string | null>;

/** How a license is written, and asked for. */
export type LicenseForm = {
  /** Whether a change may have its parameters in the query, too. */
  readonly isBodyInQuery: boolean;
  /** Of what `present` makes. */
  readonly schema: z.ZodType;
  present(answer: LicenseResponse, productName: ProductName): Awaitable<object>;
};

/** How a refusal is written. */
export type RefusalForm = {
  /** Of the body. */
  readonly schema: z.ZodType;
  readonly mediaType: string;
  /** What GET /openapi.json says beside that refusals tell a `code`; null where all of them do. */
  readonly exception: string | null;
  present(problem: Problem, requestId: string): { status: number; body: object };
};

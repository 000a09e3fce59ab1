import { problems } from '../../domain/problem/problem-table.ts';
import { licenseObject, serializeLicense } from '../../wire/license.ts';
import { serializeProblem, problemObject } from '../../wire/response.ts';
import type { Dialect } from './dialect.ts';

/** What the specification says, and problems (RFC 9457) where it is silent. */
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

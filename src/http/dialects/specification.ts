import { problems } from '../../domain/problem/problem-table.ts';
import { licenseObject, presentLicense } from '../wire/license.ts';
import { presentProblem, problemObject } from '../wire/common/problem.ts';
import type { Dialect } from './dialect.ts';

/** What the specification says, and problems (RFC 9457) where it is silent. */
export const specification: Dialect = {
  apiKeyHeaders: [],
  hasFirstVersion: false,
  license: {
    isBodyInQuery: false,
    schema: licenseObject,
    present: ({ license }) => presentLicense(license),
  },
  refusal: {
    schema: problemObject,
    mediaType: 'application/problem+json',
    exception: null,
    present: (problem, requestId) => ({
      status: problem.status ?? problems[problem.code].status,
      body: presentProblem(problem, requestId),
    }),
  },
};

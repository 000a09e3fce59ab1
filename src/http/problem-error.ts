import { failWith, type Problem } from '../domain/problem/problem.ts';
import type { ProblemCode } from '../domain/problem/problem-table.ts';

/** Ends a request with a problem, from where a result cannot be returned: hooks and parsers. */
export class ProblemError extends Error {
  readonly problem: Problem;
  constructor(code: ProblemCode, detail: string, more: Pick<Problem, 'retryAfterS'> = {}) {
    super(detail);
    this.name = 'ProblemError';
    this.problem = failWith(code, detail, more).problem;
  }
}

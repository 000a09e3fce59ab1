import { z } from 'zod';
import { type ParameterFault, type Problem, problemTypePrefix } from '../../domain/problem.ts';
import { problems } from '../../domain/problem-table.ts';

/** An RFC 9457 problem. */
export type ProblemObject = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
  errors?: readonly ParameterFault[] | undefined;
  reasons?: readonly string[] | undefined;
};

export const problemObject: z.ZodType<ProblemObject> = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    request_id: z.string(),
    errors: z
      .array(z.object({ parameter: z.string(), code: z.string(), detail: z.string() }))
      .readonly()
      .optional(),
    reasons: z.array(z.string()).readonly().optional(),
  })
  .meta({ id: 'Problem' });

/** Writes a problem as RFC 9457 wants it. */
export function presentProblem(problem: Problem, requestId: string): ProblemObject {
  const { title, status } = problems[problem.code];
  return {
    type: `${problemTypePrefix}${problem.code}`,
    title,
    status: problem.status ?? status,
    detail: problem.detail,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors !== undefined && { errors: problem.errors }),
    ...(problem.reasons !== undefined && { reasons: problem.reasons }),
  };
}

import { z } from 'zod';
import { type ParameterFault, type Problem, problemTypePrefix } from '../../../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../../domain/problem/problem-table.ts';

/** An RFC 9457 problem. */
export type ProblemObject = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ProblemCode;
  request_id: string;
  errors?: readonly ParameterFault[] | undefined;
  reasons?: readonly string[] | undefined;
};

const parameterFault = z
  .object({ parameter: z.string(), code: z.string(), detail: z.string() })
  .meta({ id: 'ParameterFault' });

// The keys of the table are its codes.
const codes = Object.keys(problems) as ProblemCode[];

export const problemObject: z.ZodType<ProblemObject> = z
  .object({
    type: z.string().regex(new RegExp(`^${problemTypePrefix}[a-z_]+$`)),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(codes),
    request_id: z.string(),
    errors: z.array(parameterFault).readonly().optional(),
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

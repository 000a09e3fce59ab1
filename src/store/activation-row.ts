import type { Activation } from '../domain/lease.ts';

/** A row of the table of activations, on both engines. */
export type ActivationRow = Omit<Activation, 'answer' | 'uses' | 'movedAt' | 'challengedAt'> & {
  answer: string;
  recorded: number;
  returned: number;
  movedAt: string;
  challengedAt: string;
};

export function activationFrom({
  answer,
  recorded,
  returned,
  movedAt,
  challengedAt,
  ...same
}: ActivationRow): Activation {
  return {
    ...same,
    answer: JSON.parse(answer) as Activation['answer'],
    uses: { recorded, returned },
    movedAt: JSON.parse(movedAt) as number[],
    challengedAt: JSON.parse(challengedAt) as number[],
  };
}

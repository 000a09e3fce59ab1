import { Field, fieldText, type ActionProps } from './action.tsx';
import { Secret } from './secret.tsx';

/** Replaces a credential; the old one may work for a time. */
export function rotate({
  what,
  of,
  command,
  run,
}: {
  what: 'secret' | 'API key' | 'token';
  of: string;
  command: string;
  /** Returns the new one. */
  run: (body: { keep_old_s?: number }) => Promise<string | undefined>;
}): ActionProps {
  const kept = (form: FormData): number => Number(fieldText(form, 'keep_old_s'));
  const short = what === 'API key' ? 'key' : what;
  return {
    label: what === 'token' ? 'Rotate' : `New ${what}`,
    title: what === 'token' ? `Rotate the token ${of}?` : `Create a new ${what} of ${of}?`,
    consequence: `Software with the old ${short} is refused as soon as the old ${short} ends. The new ${short} is shown once.`,
    command: (form) => `${command}${kept(form) === 0 ? '' : ` --keep-old ${kept(form) / 3600}h`}`,
    isDangerous: true,
    run: async (form) => (
      <Secret name={`new ${what}`} secret={await run(kept(form) === 0 ? {} : { keep_old_s: kept(form) })} />
    ),
    children: (
      <Field
        label="The old one"
        name="keep_old_s"
        value="86400"
        options={[
          ['86400', 'works for one more day'],
          ['604800', 'works for one more week'],
          ['0', 'stops at once'],
        ]}
      />
    ),
  };
}

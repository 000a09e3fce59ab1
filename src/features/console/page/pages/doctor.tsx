import type { DoctorObject } from '../../wire/console.ts';
import { counted } from '../format.ts';
import { Command, SameCommand } from '../parts/command.tsx';
import { Badge, Notice } from '../parts/notice.tsx';
import { Heading, Section } from '../parts/page.tsx';
import { Sentence } from '../parts/time.tsx';
import { useData } from '../use-data.ts';

type Finding = DoctorObject['findings'][number];
type Level = Finding['level'];

const titles: Readonly<Record<Level, string>> = {
  fail: 'Failures',
  warn: 'Warnings',
  ok: 'In order',
};

/** Examines the daemon, and shows what was found with the remedies. */
export function Doctor() {
  const { data, error, isReading, reload } = useData<DoctorObject>('/admin/v1/doctor');
  return (
    <>
      <Heading title="Doctor">
        <button type="button" onClick={reload} disabled={isReading}>
          {isReading ? 'Examining …' : 'Examine again'}
        </button>
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      <div aria-live="polite" class="stack">
        {data === null && error === null && (
          <p class="quiet">
            The daemon examines itself, its database and the upstream. This takes a few seconds.
          </p>
        )}
        {data !== null && <Findings findings={data.findings} />}
      </div>
      <SameCommand line="latchkey doctor" />
    </>
  );
}

function Findings({ findings }: { findings: readonly Finding[] }) {
  const of = (level: Level): readonly Finding[] => findings.filter((finding) => finding.level === level);
  const [failures, warnings] = [of('fail').length, of('warn').length];
  return (
    <>
      {failures + warnings === 0 ? (
        <Notice tone="ok">All is well: {counted(findings.length, 'examination')}, and no problem.</Notice>
      ) : (
        <Notice tone={failures > 0 ? 'fail' : 'warn'}>
          {[
            ...(failures > 0 ? [counted(failures, 'failure')] : []),
            ...(warnings > 0 ? [counted(warnings, 'warning')] : []),
          ].join(' and ')}
          .
        </Notice>
      )}
      {(['fail', 'warn', 'ok'] as const).map((level) => (
        <FindingList key={level} level={level} findings={of(level)} />
      ))}
    </>
  );
}

function FindingList({ level, findings }: { level: Level; findings: readonly Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <Section title={titles[level]}>
      <ul class="findings">
        {findings.map(({ what, advice }) => (
          <li key={what}>
            <Badge tone={level}>{level}</Badge>
            <div>
              <p>
                <Sentence text={what} />
              </p>
              {advice !== null && <Advice advice={advice} />}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** An advice that ends with a command, or is one. */
const withCommand = /^(?:(.*): )?((?:latchkey|chmod|chown|icacls) .*)$/;

function Advice({ advice }: { advice: string }) {
  const [, words = '', command = null] = withCommand.exec(advice) ?? [undefined, advice];
  return (
    <>
      {words !== '' && (
        <p class="quiet">
          <Sentence text={words} />
        </p>
      )}
      {command !== null && <Command line={command} />}
    </>
  );
}

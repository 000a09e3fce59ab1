// Checks a license key when it starts, and counts a use: LicenseCheck LICENSE-KEY
using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

public static class LicenseCheck
{
    static readonly TimeSpan Deadline = TimeSpan.FromSeconds(10);
    static readonly TimeSpan Grace = TimeSpan.FromDays(14);
    static readonly string LastKnown = Getenv("LATCHKEY_LAST_KNOWN", "last-known");
    static readonly HttpClient Http = NewClient();

    public static int Main(string[] args)
    {
        return Run(args[0]).GetAwaiter().GetResult();
    }

    static async Task<int> Run(string key)
    {
        string verdict = Remembered(await Verify(key));
        Console.WriteLine(verdict);
        if (verdict == "valid") Console.WriteLine("uses: " + await CountUse(key));
        return verdict.StartsWith("valid") ? 0 : verdict.StartsWith("refused") ? 1 : 2;
    }

    static HttpClient NewClient()
    {
        var client = new HttpClient
        {
            BaseAddress = new Uri(Getenv("LATCHKEY_URL", "http://127.0.0.1:8787")),
            Timeout = TimeSpan.FromSeconds(5),
        };
        client.DefaultRequestHeaders.Add("product-secret-key", Environment.GetEnvironmentVariable("LATCHKEY_SECRET"));
        client.DefaultRequestHeaders.Add("Accept", "application/problem+json, application/json");
        return client;
    }

    static async Task<string> Verify(string key)
    {
        try
        {
            var answer = await Http.GetAsync("/api/v2/license/verify?license_key=" + Uri.EscapeDataString(key));
            string body = await answer.Content.ReadAsStringAsync();
            string enabled = (int)answer.StatusCode == 200 ? Member(body, "enabled") : "";
            if (enabled == "true") return "valid";
            if (enabled == "false") return "refused: disabled";
            bool isUnknown = (int)answer.StatusCode == 404 && Member(body, "code") == "license_not_found";
            return isUnknown ? "refused: not found" : "undetermined";
        }
        catch (Exception error) when (IsNoAnswer(error))
        {
            return "undetermined";
        }
    }

    /// <summary>The key of the request is made once and kept across retries, so that the use counts once.</summary>
    static async Task<string> CountUse(string key)
    {
        string idempotencyKey = Guid.NewGuid().ToString();
        DateTime end = DateTime.UtcNow + Deadline;
        for (int wait = 100; DateTime.UtcNow < end; wait = Math.Min(2 * wait, 2000))
        {
            try
            {
                var request = new HttpRequestMessage(HttpMethod.Put, "/api/v2/license/usage");
                request.Headers.Add("Idempotency-Key", idempotencyKey);
                request.Content = new FormUrlEncodedContent(new Dictionary<string, string> { { "license_key", key } });
                var answer = await Http.SendAsync(request);
                string body = await answer.Content.ReadAsStringAsync();
                int status = (int)answer.StatusCode;
                if (status == 200) return Member(body, "uses");
                if (status < 500 && status != 408 && status != 409 && status != 429)
                    return "refused (" + Member(body, "code") + ")";
            }
            catch (Exception error) when (IsNoAnswer(error))
            {
                // It may have been counted: the same request again tells.
            }
            await Task.Delay(wait);
        }
        return "later, under " + idempotencyKey;
    }

    /// <summary>What counts in the end: no answer is no "no", and only "disabled" revokes at once.</summary>
    static string Remembered(string verdict)
    {
        if (verdict == "valid" || verdict == "refused: disabled")
            File.WriteAllText(LastKnown, DateTime.UtcNow.Ticks + " " + verdict);
        if (verdict != "undetermined" || !File.Exists(LastKnown)) return verdict;
        string[] line = File.ReadAllText(LastKnown).Split(new[] { ' ' }, 2);
        if (line.Length == 2 && line[1] == "refused: disabled") return line[1];
        long ticks;
        bool isRecent = long.TryParse(line[0], out ticks) && DateTime.UtcNow.Ticks - ticks < Grace.Ticks;
        return isRecent ? "valid (last known)" : verdict;
    }

    static bool IsNoAnswer(Exception error)
    {
        return error is HttpRequestException || error is TaskCanceledException || error is IOException;
    }

    /// <summary>A member of a JSON answer; a program that has a JSON library at hand takes that.</summary>
    static string Member(string body, string name)
    {
        return Regex.Match(body, "\"" + name + "\":\\s*\"?([^\",}]*)").Groups[1].Value;
    }

    static string Getenv(string name, string otherwise)
    {
        string value = Environment.GetEnvironmentVariable(name);
        return string.IsNullOrEmpty(value) ? otherwise : value;
    }
}

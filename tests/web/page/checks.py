"""What the page must do: functions that drive Chromium, which `browser.py` runs where there is Playwright."""

from collections.abc import Callable

from tests.web.page import asking, looking, translating
from tests.web.page.visit import Visit

CHECKS: list[Callable[[Visit], None]] = [
    translating.texts_are_translated_and_painted_at_once,
    translating.pointing_lights_both_sides,
    translating.the_text_behind_the_box_lies_exactly_below_it,
    translating.the_caret_lights_its_word,
    translating.a_keyboard_is_enough_for_other_translations,
    translating.a_click_on_a_word_shows_how_the_sentence_may_go_on_instead,
    translating.a_long_text_is_whole,
    translating.pieces_of_a_stream_are_all_written,
    translating.languages_are_offered_as_the_models_have_them,
    translating.a_detected_language_is_said,
    translating.swapping_translates_back,
    translating.copying_clearing_and_saving,
    translating.terms_are_used_and_wrong_lines_are_named,
    translating.files_are_opened_and_dropped,
    translating.what_should_be_checked_is_said,
    asking.a_key_is_no_request,
    asking.an_edit_ends_the_translation_before,
    asking.escape_stops,
    asking.the_address_has_the_languages_alone,
    asking.wrong_languages_in_the_address_do_no_harm,
    asking.refusals_and_broken_connections_are_said_in_words,
    asking.a_key_is_asked_for_and_waits_are_as_told,
    asking.an_edit_does_not_cut_a_wait_short,
    asking.hostile_texts_stay_texts,
    asking.hostile_answers_stay_texts,
    asking.scripts_of_elsewhere_and_markup_are_refused_by_the_browser,
    looking.nothing_is_wrong_by_day,
    looking.nothing_is_wrong_by_night,
    looking.nothing_is_wrong_on_a_phone,
    looking.nothing_is_wrong_from_right_to_left,
    looking.nothing_is_wrong_where_the_page_itself_is_turned,
    looking.the_page_of_the_api_shows_it,
]
